//! The report of a check.

use serde::Serialize;

use super::codes::CheckCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckOutcome {
    Passed,
    /// It works, or may work, but needs attention.
    Warned,
    Failed,
}

/// The result of one check.
#[derive(Clone, Debug)]
pub(super) struct CheckLine {
    pub(super) code: CheckCode,
    pub(super) outcome: CheckOutcome,
    pub(super) detail: String,
    /// The remedy, preferably a command. Present unless the check passed.
    pub(super) mend: String,
    /// Whether the check may pass soon without intervention, so that `--wait` continues.
    pub(super) in_progress: bool,
}

#[derive(Clone, Debug)]
pub(super) struct CheckSection {
    pub(super) name: &'static str,
    pub(super) lines: Vec<CheckLine>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CheckReport {
    pub(super) sections: Vec<CheckSection>,
}

impl CheckLine {
    pub(super) fn passed(code: CheckCode, detail: impl Into<String>) -> Self {
        Self { code, outcome: CheckOutcome::Passed, detail: detail.into(), mend: String::new(), in_progress: false }
    }

    pub(super) fn warned(code: CheckCode, detail: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { code, outcome: CheckOutcome::Warned, detail: detail.into(), mend: mend.into(), in_progress: false }
    }

    pub(super) fn failed(code: CheckCode, detail: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { code, outcome: CheckOutcome::Failed, detail: detail.into(), mend: mend.into(), in_progress: false }
    }
}

impl CheckLine {
    pub(super) fn with_in_progress(self, settles: bool) -> Self {
        Self { in_progress: settles, ..self }
    }
}

impl CheckReport {
    /// The lines that `--wait` waits for.
    pub(super) fn pending_lines(&self) -> impl Iterator<Item = &CheckLine> {
        self.lines().filter(|line| line.outcome == CheckOutcome::Failed || line.in_progress)
    }

    /// At the end of the wait, checks that are still in progress have failed.
    pub(super) fn fail_pending(&mut self) {
        let lines = self.sections.iter_mut().flat_map(|section| &mut section.lines);
        lines.filter(|line| line.in_progress).for_each(|line| line.outcome = CheckOutcome::Failed);
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &CheckLine> {
        self.sections.iter().flat_map(|section| &section.lines)
    }

    pub(super) fn failed_lines(&self) -> impl Iterator<Item = &CheckLine> {
        self.lines().filter(|line| line.outcome == CheckOutcome::Failed)
    }

    pub(super) fn to_document(&self) -> CheckDocument {
        let line = |line: &CheckLine| LineDocument {
            code: line.code.id,
            title: line.code.title,
            result: line.outcome,
            detail: line.detail.clone(),
            mend: line.mend.clone(),
        };
        let section = |section: &CheckSection| SectionDocument {
            name: section.name,
            lines: section.lines.iter().map(line).collect(),
        };
        let sections = self.sections.iter().map(section).collect();
        CheckDocument { success: self.failed_lines().next().is_none(), sections }
    }
}

/// The machine-readable report. Fields are added over time, and none changes its meaning.
#[derive(Debug, Serialize)]
pub(super) struct CheckDocument {
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
    result: CheckOutcome,
    detail: String,
    mend: String,
}
