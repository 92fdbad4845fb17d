//! Problems of a document, and how they are shown.

mod mask;
mod render;

#[cfg(test)]
mod tests;

use std::{error, fmt, sync::Arc};

pub(crate) use mask::{MaskedText, label_span};
use render::Snippet;

use crate::{decode::DocumentFindings, yaml::TextSpan};

/// A position in the text. Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemSeverity {
    Error,
    /// The document is accepted, but may not do what it seems to do.
    Warning,
}

/// A problem of a document.
///
/// Its [`Display`](fmt::Display) shows the line with a caret under the position. The line shows only keys, and
/// values that are known to be no secrets. Values of secret fields, and values that came from the environment
/// or a file, are neither in the line nor in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentProblem {
    pub severity: ProblemSeverity,
    /// The path in the document: `exporters::otlp/backend::sending_queue::queue_size`. Empty for the document
    /// itself.
    pub path: String,
    pub position: TextPosition,
    pub message: String,
    /// How to fix it, if that is known.
    pub help: Option<String>,
    /// The path with the names of list items.
    display_path: String,
    file: Option<Arc<str>>,
    snippet: Snippet,
}

impl DocumentProblem {
    /// The path for people: with the names of the list items on it.
    pub fn display_path(&self) -> &str {
        &self.display_path
    }

    /// The same problem, shown with the name of its file.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        self.file = Some(name.into());
        self
    }
}

impl fmt::Display for DocumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        render::problem(self, f)
    }
}

/// The errors of a refused document: at least one, in the order of the text, and its warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentErrors {
    problems: Vec<DocumentProblem>,
    /// The number of problems beyond those that are kept.
    dropped_problems: usize,
    warnings: Vec<DocumentProblem>,
}

impl DocumentErrors {
    /// The problems, in the order of the text.
    pub fn problems(&self) -> &[DocumentProblem] {
        &self.problems
    }

    /// Warnings, as far as they can be determined for an invalid document.
    pub fn warnings(&self) -> &[DocumentProblem] {
        &self.warnings
    }

    /// The same errors, shown with the name of their file.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        let named =
            |problems: Vec<DocumentProblem>| problems.into_iter().map(|problem| problem.in_file(name)).collect();
        (self.problems, self.warnings) = (named(self.problems), named(self.warnings));
        self
    }
}

impl fmt::Display for DocumentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.problems.iter().chain(&self.warnings) {
            writeln!(f, "{problem}\n")?;
        }
        match self.problems.len() + self.dropped_problems {
            1 => f.write_str("1 error"),
            count => write!(f, "{count} errors"),
        }?;
        if self.dropped_problems > 0 {
            write!(f, ", of which {} are shown", self.problems.len())?;
        }
        match self.warnings.len() {
            0 => Ok(()),
            1 => f.write_str("; 1 warning"),
            count => write!(f, "; {count} warnings"),
        }
    }
}

impl error::Error for DocumentErrors {}

/// A problem before it is rendered: its position and message, without the text.
#[derive(Clone, Debug)]
pub(crate) struct DocumentFinding {
    pub(crate) path: String,
    pub(crate) span: TextSpan,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Converts findings to problems that show their line, in the order of the text.
pub(crate) fn into_problems(
    mut findings: Vec<DocumentFinding>,
    severity: ProblemSeverity,
    text: &MaskedText<'_>,
) -> Vec<DocumentProblem> {
    findings.sort_by_key(|finding| (finding.span.line, finding.span.column));
    findings.into_iter().map(|finding| into_problem(finding, severity, text)).collect()
}

fn into_problem(finding: DocumentFinding, severity: ProblemSeverity, text: &MaskedText<'_>) -> DocumentProblem {
    DocumentProblem {
        severity,
        display_path: text.display_path(&finding.path),
        path: finding.path,
        position: TextPosition { line: finding.span.line, column: finding.span.column },
        message: finding.message,
        help: finding.help,
        file: None,
        snippet: Snippet::cut(text, finding.span),
    }
}

/// Converts findings to errors; there must be at least one.
pub(crate) fn into_errors(findings: DocumentFindings, text: &MaskedText<'_>) -> DocumentErrors {
    DocumentErrors {
        problems: into_problems(findings.errors, ProblemSeverity::Error, text),
        dropped_problems: findings.more,
        warnings: into_problems(findings.warnings, ProblemSeverity::Warning, text),
    }
}

/// Prepares text from the document for a message: one line, of bounded length, and without the credentials of a
/// URL.
pub(crate) fn crop(text: &str) -> String {
    /// Long enough for any endpoint or name that a person wrote.
    const MAX_MESSAGE_CHARS: usize = 100;
    if has_credentials(text) {
        return "***".to_owned();
    }
    let mut short: String =
        text.chars().take(MAX_MESSAGE_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if short.len() < text.len() && text.chars().nth(MAX_MESSAGE_CHARS).is_some() {
        short.push('…');
    }
    short
}

/// Prepares a key for a message or a path: its name, without a value that became part of it because a space is
/// missing.
pub(crate) fn label(key: &str) -> String {
    let length = mask::label_length(key);
    let name: String = key.chars().take(length).collect();
    if length < key.chars().count() { format!("{}***", crop(&name)) } else { crop(&name) }
}

/// Whether a text may be a URL with a user and password in it.
pub(crate) fn has_credentials(text: &str) -> bool {
    text.contains('@')
}
