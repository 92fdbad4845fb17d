//! Ids of components and pipelines.

use std::sync::Arc;

use kubewake_otlp::Signal;
use thiserror::Error;

use super::{cursor::Cursor, report::DecodeReport, scalar};
use crate::{ComponentId, PipelineId};

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum IdError {
    #[error("is empty")]
    Empty,
    #[error("has nothing before the `/`")]
    NoType,
    #[error("has nothing after the `/`")]
    NoName,
    #[error("has a type that is not made of letters, digits and `_`")]
    BadType,
    #[error("has a name with spaces, symbols or control characters in it")]
    BadName,
    #[error("is too long")]
    TooLong,
    #[error("has an unknown signal")]
    UnknownSignal,
}

/// Parses an id as the Collector does: space around either part is ignored.
pub(crate) fn component(text: &str) -> Result<ComponentId, IdError> {
    let (kind, name) = parts(text)?;
    let valid = kind.starts_with(|c: char| c.is_ascii_alphabetic())
        && kind.len() <= 63
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !valid {
        return Err(IdError::BadType);
    }
    Ok(match name {
        Some(name) => ComponentId::new(format!("{kind}/{name}")),
        None => ComponentId::new(kind),
    })
}

/// Parses the id of a pipeline: a signal, or a signal and a name.
pub(crate) fn pipeline(text: &str) -> Result<PipelineId, IdError> {
    let (kind, name) = parts(text)?;
    let signal = Signal::ALL.into_iter().find(|signal| signal.name() == kind).ok_or(IdError::UnknownSignal)?;
    Ok(PipelineId { signal, name: name.map(Arc::from) })
}

fn parts(text: &str) -> Result<(&str, Option<&str>), IdError> {
    let (kind, name) = match text.split_once('/') {
        Some((kind, name)) => (kind.trim(), Some(name.trim())),
        None => (text.trim(), None),
    };
    match (kind, name) {
        ("", None) => Err(IdError::Empty),
        ("", Some(_)) => Err(IdError::NoType),
        (_, Some("")) => Err(IdError::NoName),
        (_, Some(name)) if name.len() > 1024 => Err(IdError::TooLong),
        (_, Some(name)) if !name.chars().all(allowed_in_name) => Err(IdError::BadName),
        parts => Ok(parts),
    }
}

/// The Collector refuses the Unicode classes separator, other and symbol.
fn allowed_in_name(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !"$+<=>^`|~".contains(c)
}

/// Reads a value that is an id.
pub(crate) fn reference(at: &Cursor<'_>, report: &DecodeReport) -> Option<ComponentId> {
    let text = scalar::text(at, report)?;
    match component(&text) {
        Ok(id) => Some(id),
        Err(error) => {
            report.error(at, format!("the id {} {error}", at.quote(&text)), Some(ID_HELP.into()));
            None
        }
    }
}

pub(crate) const ID_HELP: &str = "an id is `type` or `type/name`, such as `otlp` or `otlp/backend`";
