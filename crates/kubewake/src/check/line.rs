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
        Self { code, outcome: Outcome::Passed, detail: detail.into(), mend: String::new() }
    }

    /// Somebody should look.
    pub(super) fn warned(code: Code, detail: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { code, outcome: Outcome::Warned, detail: detail.into(), mend: mend.into() }
    }

    /// Something is wrong.
    pub(super) fn failed(code: Code, detail: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { code, outcome: Outcome::Failed, detail: detail.into(), mend: mend.into() }
    }
}

impl Report {
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.sections.iter().flat_map(|section| &section.lines)
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = &Line> {
        self.lines().filter(|line| line.outcome == Outcome::Failed)
    }

    /// As programs read it.
    pub(super) fn document(&self) -> serde_json::Value {
        let line = |line: &Line| {
            serde_json::json!({
                "code": line.code.id, "title": line.code.title, "result": line.outcome, "detail": line.detail, "mend": line.mend,
            })
        };
        let section = |section: &Section| serde_json::json!({"name": section.name, "lines": section.lines.iter().map(line).collect::<Vec<_>>()});
        serde_json::json!({
            "success": self.failed().next().is_none(),
            "sections": self.sections.iter().map(section).collect::<Vec<_>>(),
        })
    }
}
