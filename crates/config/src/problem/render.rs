//! Renders a problem: its line, with a caret under the position.

use std::fmt;

use super::{DocumentProblem, MaskedText, ProblemSeverity};
use crate::yaml::TextSpan;

/// The limit of a line on each side of the caret's first character; more would wrap on a terminal anyway.
const MAX_SNIPPET_CHARS_PER_SIDE: usize = 90;

/// The part of a line that a problem shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Snippet {
    text: String,
    /// The column of the caret, and its width.
    indent: usize,
    width: usize,
}

impl Snippet {
    /// Cuts the line of a span to a width that fits a screen, with secrets masked.
    pub(super) fn cut(text: &MaskedText<'_>, span: TextSpan) -> Self {
        let Some((line, column, end)) = text.line(span) else { return Self::default() };
        let characters: Vec<char> = line.iter().map(|c| if c.is_control() { ' ' } else { *c }).collect();
        let from = column.saturating_sub(MAX_SNIPPET_CHARS_PER_SIDE);
        let shown: String = characters.iter().skip(from).take(2 * MAX_SNIPPET_CHARS_PER_SIDE).collect();
        let room = shown.trim_end().chars().count().saturating_sub(column - from);
        let width = (end - column).min(room).max(1);
        Self { text: shown.trim_end().to_owned(), indent: column - from, width }
    }
}

pub(super) fn problem(problem: &DocumentProblem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let label = match problem.severity {
        ProblemSeverity::Error => "error",
        ProblemSeverity::Warning => "warning",
    };
    let number = problem.position.line.to_string();
    let margin = " ".repeat(number.len());
    write!(f, "{label}: {}\n{margin}--> ", problem.message)?;
    match &problem.file {
        Some(file) => write!(f, "{file}:{}", problem.position)?,
        None => write!(f, "{}", problem.position)?,
    }
    if !problem.display_path.is_empty() {
        write!(f, " {}", problem.display_path)?;
    }
    if !problem.snippet.text.is_empty() {
        let Snippet { text, indent, width } = &problem.snippet;
        write!(f, "\n{margin} |\n{number} | {text}\n{margin} | {}{}", " ".repeat(*indent), "^".repeat(*width))?;
    }
    if let Some(help) = &problem.help {
        write!(f, "\n{margin} = help: {help}")?;
    }
    Ok(())
}
