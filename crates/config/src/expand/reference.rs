//! Finds and resolves single references.

use std::{io, ops::Range, path::PathBuf};

use thiserror::Error;

use crate::problem::crop;

#[derive(Debug, PartialEq)]
pub(super) enum SourceReference<'t> {
    Env { name: &'t str, default: Option<&'t str> },
    File(&'t str),
}

/// Why a reference has no value.
#[derive(Debug, Error)]
pub(super) enum ExpansionError {
    #[error("the scheme `{0}` is not supported")]
    Scheme(String),
    #[error("the reference is not valid")]
    Malformed,
    #[error("the name of the environment variable is not valid")]
    Name,
    #[error("the reference contains a `$`")]
    Dollar,
    #[error("failed to read the file {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the references form a cycle: one of them refers to itself")]
    Circle,
    #[error("the referenced values exceed the size limit of a document")]
    TooLarge,
}

impl ExpansionError {
    pub(super) fn help(&self) -> Option<String> {
        match self {
            Self::Scheme(_) | Self::Malformed => Some(
                "supported references: ${env:NAME}, ${env:NAME:-default}, ${file:path}; $$ is a literal `$`".into(),
            ),
            Self::Name => Some("a name consists of letters, digits and `_`, and does not begin with a digit".into()),
            Self::Dollar => Some("write $${ for a literal `${`".into()),
            Self::File { .. } | Self::Circle | Self::TooLarge => None,
        }
    }
}

/// The first innermost reference that is complete and not escaped.
pub(super) fn find(text: &str) -> Option<Range<usize>> {
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let close = from + rest.find('}')?;
        let before = text.get(from..close)?;
        if let Some(open) = before.rfind("${").map(|open| from + open) {
            let dollars = text.get(..open)?.bytes().rev().take_while(|byte| *byte == b'$').count();
            if dollars % 2 == 0 {
                return Some(open..close + 1);
            }
        }
        from = close + 1;
    }
}

/// The first reference in a text as it may be shown: without a default, and without the text around it.
pub(super) fn display_reference(text: &str) -> String {
    let written = find(text).and_then(|range| text.get(range)).unwrap_or_default();
    match SourceReference::parse(written) {
        Ok(SourceReference::Env { name, .. }) => format!("${{env:{name}}}"),
        Ok(SourceReference::File(path)) => format!("${{file:{path}}}"),
        Err(_) => "a reference".to_owned(),
    }
}

impl<'t> SourceReference<'t> {
    pub(super) fn parse(written: &'t str) -> Result<Self, ExpansionError> {
        let inner = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        let (scheme, opaque) = match inner.split_once(':') {
            Some((scheme, opaque)) => (scheme, opaque),
            None => ("env", inner),
        };
        let valid = scheme.len() >= 2
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
        if !valid {
            return Err(ExpansionError::Malformed);
        }
        if opaque.contains('$') {
            return Err(ExpansionError::Dollar);
        }
        match scheme {
            "env" => Self::env(opaque),
            "file" => Ok(Self::File(opaque)),
            other => Err(ExpansionError::Scheme(crop(other))),
        }
    }

    fn env(opaque: &'t str) -> Result<Self, ExpansionError> {
        let (name, default) = match opaque.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (opaque, None),
        };
        let valid = !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if valid { Ok(Self::Env { name, default }) } else { Err(ExpansionError::Name) }
    }
}
