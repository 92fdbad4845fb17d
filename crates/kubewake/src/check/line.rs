//! What a check says.

use serde::Serialize;

use super::code::Code;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Passed,
    /// It works, or may work; somebody should look.
    Warned,
    Failed,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) code: Code,
    pub(super) outcome: Outcome,
    /// What was found.
    pub(super) detail: String,
    /// What to do, best a command. There if it did not pass.
    pub(super) mend: String,
    /// Whether it may well pass by itself in a moment, so that who waits waits for it.
    pub(super) settles: bool,
}

/// Lines that belong together.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) lines: Vec<Line>,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) sections: Vec<Section>,
}

impl Line {
    /// All is well.
    pub(super) fn passed(code: Code, detail: impl Into<String>) -> Self {
        Self { code, outcome: Outcome::Passed, detail: detail.into(), mend: String::new(), settles: false }
    }

    /// Somebody should look.
    pub(super) fn warned(code: Code, detail: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { code, outcome: Outcome::Warned, detail: detail.into(), mend: mend.into(), settles: false }
    }

    /// Something is wrong.
    pub(super) fn failed(code: Code, detail: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { code, outcome: Outcome::Failed, detail: detail.into(), mend: mend.into(), settles: false }
    }
}

impl Line {
    /// It is under way.
    pub(super) fn settling(self, settles: bool) -> Self {
        Self { settles, ..self }
    }
}

impl Report {
    /// What who waits waits for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &Line> {
        self.lines().filter(|line| line.outcome == Outcome::Failed || line.settles)
    }

    /// What is still under way when the wait is over has not come true.
    pub(super) fn fail_awaited(&mut self) {
        let lines = self.sections.iter_mut().flat_map(|section| &mut section.lines);
        lines.filter(|line| line.settles).for_each(|line| line.outcome = Outcome::Failed);
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.sections.iter().flat_map(|section| &section.lines)
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = &Line> {
        self.lines().filter(|line| line.outcome == Outcome::Failed)
    }

    /// As programs read it.
    pub(super) fn document(&self) -> Document {
        let line = |line: &Line| LineDocument {
            code: line.code.id,
            title: line.code.title,
            result: line.outcome,
            detail: line.detail.clone(),
            mend: line.mend.clone(),
        };
        let section =
            |section: &Section| SectionDocument { name: section.name, lines: section.lines.iter().map(line).collect() };
        let sections = self.sections.iter().map(section).collect();
        Document { success: self.failed().next().is_none(), sections }
    }
}

/// What programs read. Fields are added with time, and none changes its meaning.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    success: bool,
    sections: Vec<SectionDocument>,
}

#[derive(Debug, Serialize)]
struct SectionDocument {
    name: &'static str,
    lines: Vec<LineDocument>,
}

#[derive(Debug, Serialize)]
struct LineDocument {
    code: &'static str,
    title: &'static str,
    result: Outcome,
    detail: String,
    mend: String,
}
