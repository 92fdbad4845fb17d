//! Parses templates of names.

use super::{DateFormat, NamePiece};

/// Why a text is not a template of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameTemplateError {
    /// `%{` without `}`
    #[error("a placeholder that begins with %{{ is not closed")]
    Unclosed,
    /// `%` followed by neither `{` nor `%`
    #[error("a percent sign must be followed by {{ or by another percent sign")]
    LonePercent,
    #[error("a placeholder names no attribute")]
    NoAttribute,
    #[error("a date may have the parts yyyy, MM, dd and HH, with . - or _ between them")]
    Date,
}

pub(super) fn pieces(text: &str) -> Result<Vec<NamePiece>, NameTemplateError> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        plain.push_str(before);
        if let Some(behind) = behind.strip_prefix('%') {
            plain.push('%');
            rest = behind;
            continue;
        }
        let inner = behind.strip_prefix('{').ok_or(NameTemplateError::LonePercent)?;
        let (inner, behind) = inner.split_once('}').ok_or(NameTemplateError::Unclosed)?;
        push_text(&mut pieces, &mut plain);
        pieces.push(placeholder(inner)?);
        rest = behind;
    }
    plain.push_str(rest);
    push_text(&mut pieces, &mut plain);
    Ok(pieces)
}

fn push_text(pieces: &mut Vec<NamePiece>, plain: &mut String) {
    if !plain.is_empty() {
        pieces.push(NamePiece::Text(std::mem::take(plain)));
    }
}

fn placeholder(inner: &str) -> Result<NamePiece, NameTemplateError> {
    if let Some(format) = inner.strip_prefix('+') {
        return DateFormat::parse(format).map(NamePiece::Date).ok_or(NameTemplateError::Date);
    }
    let (key, default) = match inner.split_once(":-") {
        Some((key, default)) => (key, Some(default.to_owned())),
        None => (inner, None),
    };
    if key.is_empty() {
        return Err(NameTemplateError::NoAttribute);
    }
    Ok(NamePiece::Attribute { key: key.to_owned(), default })
}
