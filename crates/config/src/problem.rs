//! What is wrong with a document, and how it is told.

mod mask;
mod render;

#[cfg(test)]
mod tests;

use std::{error, fmt, sync::Arc};

pub(crate) use mask::{Masked, label_span};
use render::Snippet;

use crate::{decode::Findings, yaml::Span};

/// A place in the text. Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// How much a problem weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document is taken, but does not do what it may seem to do.
    Warning,
}

/// One thing that is wrong with a document.
///
/// Its [`Display`](fmt::Display) shows the line with a caret under it. Of that line only keys and values that are known
/// to be no secrets are shown. Values of secret fields, and values that came from the environment or a file, are in
/// neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How much it weighs.
    pub severity: Severity,
    /// Where in the document: `exporters::otlp/backend::sending_queue::queue_size`. Empty for the document itself.
    pub path: String,
    /// Where in the text.
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// How to mend it, if that can be said.
    pub help: Option<String>,
    /// The path, with the names of what it leads through.
    place: String,
    file: Option<Arc<str>>,
    snippet: Snippet,
}

impl Problem {
    /// The path for people: with the names of the items of lists that it leads through.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The same problem, shown with the name of the file that it is in.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        self.file = Some(name.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        render::problem(self, f)
    }
}

/// Everything that is wrong with a refused document: at least one problem, in the order of the text, and what is odd beside
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    problems: Vec<Problem>,
    /// How many more there were than are kept.
    more: usize,
    warnings: Vec<Problem>,
}

impl Errors {
    /// The problems, in the order of the text.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What is not wrong but may not be meant, as far as that can be said of a document that is wrong elsewhere.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The same errors, shown with the name of the file that they are in.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        let named = |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.in_file(name)).collect();
        (self.problems, self.warnings) = (named(self.problems), named(self.warnings));
        self
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.problems.iter().chain(&self.warnings) {
            writeln!(f, "{problem}\n")?;
        }
        match self.problems.len() + self.more {
            1 => f.write_str("1 error"),
            count => write!(f, "{count} errors"),
        }?;
        if self.more > 0 {
            write!(f, ", of which {} are shown", self.problems.len())?;
        }
        match self.warnings.len() {
            0 => Ok(()),
            1 => f.write_str("; 1 warning"),
            count => write!(f, "; {count} warnings"),
        }
    }
}

impl error::Error for Errors {}

/// A problem before it is shown: where and what, without the text.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Findings as problems that show their line, in the order of the text.
pub(crate) fn show(mut findings: Vec<Finding>, severity: Severity, text: &Masked<'_>) -> Vec<Problem> {
    findings.sort_by_key(|finding| (finding.span.line, finding.span.column));
    findings.into_iter().map(|finding| shown(finding, severity, text)).collect()
}

fn shown(finding: Finding, severity: Severity, text: &Masked<'_>) -> Problem {
    Problem {
        severity,
        place: text.place(&finding.path),
        path: finding.path,
        position: Position { line: finding.span.line, column: finding.span.column },
        message: finding.message,
        help: finding.help,
        file: None,
        snippet: Snippet::cut(text, finding.span),
    }
}

/// Findings as errors; there must be at least one.
pub(crate) fn refuse(findings: Findings, text: &Masked<'_>) -> Errors {
    Errors {
        problems: show(findings.errors, Severity::Error, text),
        more: findings.more,
        warnings: show(findings.warnings, Severity::Warning, text),
    }
}

/// Text from the document for a message: one line, not too long, and without the credentials of a URL.
pub(crate) fn crop(text: &str) -> String {
    /// Long enough for any endpoint or name that a person wrote.
    const MAX: usize = 100;
    if has_credentials(text) {
        return "***".to_owned();
    }
    let mut short: String = text.chars().take(MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if short.len() < text.len() && text.chars().nth(MAX).is_some() {
        short.push('…');
    }
    short
}

/// The key of an entry for a message or a path: its name, without a value that a missing space made a part of it.
pub(crate) fn label(key: &str) -> String {
    let length = mask::label_length(key);
    let name: String = key.chars().take(length).collect();
    if length < key.chars().count() { format!("{}***", crop(&name)) } else { crop(&name) }
}

/// Whether a text may be a URL with a user and password in it.
pub(crate) fn has_credentials(text: &str) -> bool {
    text.contains('@')
}
