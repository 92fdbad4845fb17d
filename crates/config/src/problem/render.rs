//! The look of a problem: the line, with a caret under what is meant.

use std::fmt;

use super::{Masked, Problem, Severity};
use crate::yaml::Span;

/// So much of a line is shown on each side of the caret's first character; more would wrap on a terminal anyway.
const REACH: usize = 90;

/// The part of a line that a problem shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Snippet {
    text: String,
    /// How many columns stand before the caret, and how many it is wide.
    indent: usize,
    width: usize,
}

impl Snippet {
    /// The line of a span, with secrets masked and cut to a width that a screen can hold.
    pub(super) fn cut(text: &Masked<'_>, span: Span) -> Self {
        let Some((line, column, end)) = text.line(span) else { return Self::default() };
        let characters: Vec<char> = line.iter().map(|c| if c.is_control() { ' ' } else { *c }).collect();
        let from = column.saturating_sub(REACH);
        let shown: String = characters.iter().skip(from).take(2 * REACH).collect();
        let room = shown.trim_end().chars().count().saturating_sub(column - from);
        let width = (end - column).min(room).max(1);
        Self { text: shown.trim_end().to_owned(), indent: column - from, width }
    }
}

pub(super) fn problem(problem: &Problem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let label = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let number = problem.position.line.to_string();
    let margin = " ".repeat(number.len());
    write!(f, "{label}: {}\n{margin}--> ", problem.message)?;
    match &problem.file {
        Some(file) => write!(f, "{file}:{}", problem.position)?,
        None => write!(f, "{}", problem.position)?,
    }
    if !problem.place.is_empty() {
        write!(f, " {}", problem.place)?;
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
