//! Templates of the names of indices and data streams.

use crate::{
    decode::{Cursor, DecodeReport},
    name_template::{NamePiece, NameTemplate, name_template},
};

/// What an index takes the place of a missing attribute.
const MISSING_VALUE: &str = "unknown";

/// An index. An attribute that is missing and has no default is `unknown`.
pub(crate) fn index_with_default(
    at: &Cursor<'_>,
    report: &DecodeReport,
    fallback: Option<&str>,
) -> Option<NameTemplate> {
    let template = name_template(at, report)?;
    if template.pieces().is_empty() {
        return None;
    }
    check_texts(at, report, &template, is_index_character)?;
    if template
        .pieces()
        .first()
        .is_some_and(|piece| matches!(piece, NamePiece::Text(text) if text.starts_with(['-', '_', '+', '.'])))
    {
        let message = format!("`{}` begins with a character that names of indices must not begin with", at.name());
        report.error(at, message, Some("names do not begin with - _ + or .".into()));
        return None;
    }
    Some(template.with_default(fallback.filter(|text| !text.is_empty()).unwrap_or(MISSING_VALUE)))
}

/// A part of the name of a data stream.
pub(crate) fn data_stream_part(
    at: &Cursor<'_>,
    report: &DecodeReport,
    allow_hyphen: bool,
    default: &str,
) -> Option<NameTemplate> {
    let template = name_template(at, report)?;
    check_texts(at, report, &template, |c| is_index_character(c) && (allow_hyphen || c != '-'))?;
    if template.has_date() {
        let help = "remove the date: the destination rolls data streams over by itself".to_owned();
        report.error(at, format!("`{}` has a date in it", at.name()), help);
        return None;
    }
    Some(template.with_default(default))
}

/// The index with a date behind it.
pub(crate) fn dated_index(index: NameTemplate, separator: &str, date: &str) -> Option<NameTemplate> {
    let suffix = NameTemplate::parse(&format!("{}%{{+{date}}}", separator.replace('%', "%%"))).ok()?;
    Some(index.followed_by(suffix))
}

/// A date format of `strftime` in the notation of templates; `None` for one that names cannot have.
pub(crate) fn strftime_date(format: &str) -> Option<String> {
    let date = format
        .replace("%Y", "yyyy")
        .replace("%m", "MM")
        .replace("%d", "dd")
        .replace("%H", "HH")
        .replace("%F", "yyyy-MM-dd");
    NameTemplate::parse(&format!("%{{+{date}}}")).ok().map(|_| date)
}

fn check_texts(
    at: &Cursor<'_>,
    report: &DecodeReport,
    template: &NameTemplate,
    is_allowed: impl Fn(char) -> bool,
) -> Option<()> {
    let texts = template.pieces().iter().filter_map(|piece| match piece {
        NamePiece::Text(text) | NamePiece::Attribute { default: Some(text), .. } => Some(text),
        NamePiece::Attribute { .. } | NamePiece::Date(_) => None,
    });
    if texts.flat_map(|text| text.chars()).all(is_allowed) {
        return Some(());
    }
    let help = "names are in lower case, without spaces and without \\ / * ? \" < > | , # :".to_owned();
    report.error(at, format!("`{}` has characters that the name must not have", at.name()), help);
    None
}

/// Whether names of indices may have this character.
pub fn is_index_character(character: char) -> bool {
    let is_upper = character.to_lowercase().ne([character]);
    !is_upper && !character.is_whitespace() && !character.is_control() && !"\\/*?\"<>|,#:".contains(character)
}
