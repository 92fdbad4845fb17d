//! Evaluation and parse errors, with cel-go's messages.

use std::fmt;

use kube_cel::cel::{ExecutionError, ParseErrors};

use super::meter::COST_LIMIT_MESSAGE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError(String);

impl EvaluationError {
    /// Whether an operator or function was called with types that it does not accept.
    pub fn is_overload(&self) -> bool {
        self.0.starts_with("no such overload")
    }

    /// Whether the evaluation was stopped because of its cost.
    pub fn is_exhausted(&self) -> bool {
        self.0 == COST_LIMIT_MESSAGE
    }

    pub(super) fn exhausted() -> Self {
        Self(COST_LIMIT_MESSAGE.to_owned())
    }

    pub(super) fn internal() -> Self {
        Self("internal error".to_owned())
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EvaluationError {}

impl From<ExecutionError> for EvaluationError {
    fn from(error: ExecutionError) -> Self {
        Self(match error {
            ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
            ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
            ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
            ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
            ExecutionError::Overflow(..) => "integer overflow".to_owned(),
            ExecutionError::IndexOutOfBounds(index) => match index {
                super::CelValue::Int(index) => format!("index out of bounds: {index}"),
                _ => "index out of bounds".to_owned(),
            },
            ExecutionError::FunctionError { message, .. } => message,
            // All others are type errors. Their texts quote whole values, which may be long or secret.
            _ => "no such overload".to_owned(),
        })
    }
}

pub(super) fn parse_error(source: &str, errors: &ParseErrors) -> String {
    let shown = errors.errors.iter().map(|error| {
        let line = usize::try_from(error.pos.0).unwrap_or(1).max(1);
        let column = usize::try_from(error.pos.1).unwrap_or(1).max(1);
        format_error(source, line, column, &error.msg)
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// An error with its line, and a caret under its column. Lines and columns count from one.
pub(super) fn format_error(source: &str, line: usize, column: usize, problem: &str) -> String {
    let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let dots = ".".repeat(column.saturating_sub(1));
    format!("ERROR: <input>:{line}:{column}: {problem}\n | {text}\n | {dots}^")
}
