//! Templates of names: of tenants, labels, indices and data streams.
//!
//! `logs-%{k8s.namespace.name:-none}-%{+yyyy.MM.dd}` is a text, an attribute with a default, a text, and the date
//! of the record in UTC. `%%` is a percent sign.
//!
//! *Guarantees.* A template takes its values from the attributes of the resource, and from attributes of the record
//! only if the exporter's `allow_record_attributes` names them.

mod date;
mod parse;

#[cfg(test)]
mod tests;

pub use date::{DateFormat, DatePart};
pub use parse::NameTemplateError;

use std::fmt;

use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlValue,
};

/// The longest template, in bytes.
const MAX_TEMPLATE_BYTES: usize = 1024;

/// A name that may depend on attributes and on the date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate {
    pieces: Vec<NamePiece>,
}

/// A piece of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePiece {
    Text(String),
    /// The value of an attribute. Without a default there is no name if the attribute is missing.
    Attribute {
        key: String,
        default: Option<String>,
    },
    /// The date or time of the record, in UTC.
    Date(DateFormat),
}

impl NameTemplate {
    /// Parses the text of a template.
    ///
    /// # Errors
    ///
    /// If a placeholder is not closed, is empty, or has an unknown date format.
    pub fn parse(text: &str) -> Result<Self, NameTemplateError> {
        parse::pieces(text).map(|pieces| Self { pieces })
    }

    /// A name that is the value of one attribute.
    pub fn from_attribute(key: impl Into<String>) -> Self {
        Self { pieces: vec![NamePiece::Attribute { key: key.into(), default: None }] }
    }

    /// A name that is the same for all records.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { pieces: vec![NamePiece::Text(text.into())] }
    }

    /// The template with this default for every attribute that has none.
    #[must_use]
    pub fn with_default(mut self, value: &str) -> Self {
        for piece in &mut self.pieces {
            if let NamePiece::Attribute { default, .. } = piece {
                default.get_or_insert_with(|| value.to_owned());
            }
        }
        self
    }

    /// The template with another one behind it.
    #[must_use]
    pub fn followed_by(mut self, other: Self) -> Self {
        for piece in other.pieces {
            match (self.pieces.last_mut(), piece) {
                (Some(NamePiece::Text(before)), NamePiece::Text(text)) => before.push_str(&text),
                (_, piece) => self.pieces.push(piece),
            }
        }
        self
    }

    /// The pieces, in order. No two texts follow each other.
    pub fn pieces(&self) -> &[NamePiece] {
        &self.pieces
    }

    /// The attributes that it names.
    pub fn attribute_keys(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            NamePiece::Attribute { key, .. } => Some(key.as_str()),
            NamePiece::Text(_) | NamePiece::Date(_) => None,
        })
    }

    /// Whether it contains a date.
    pub fn has_date(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, NamePiece::Date(_)))
    }

    /// The name, if it is the same for all records.
    pub fn as_text(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [NamePiece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for NameTemplate {
    /// The text that it was parsed from, or one of the same meaning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            NamePiece::Text(text) => f.write_str(&text.replace('%', "%%")),
            NamePiece::Attribute { key, default: None } => write!(f, "%{{{key}}}"),
            NamePiece::Attribute { key, default: Some(default) } => write!(f, "%{{{key}:-{default}}}"),
            NamePiece::Date(format) => write!(f, "%{{+{format}}}"),
        })
    }
}

impl From<&NameTemplate> for YamlValue {
    fn from(template: &NameTemplate) -> Self {
        Self::from(&template.to_string())
    }
}

/// A template in a document.
pub(crate) fn name_template(at: &Cursor<'_>, report: &DecodeReport) -> Option<NameTemplate> {
    let text = scalar::text(at, report)?;
    if text.len() > MAX_TEMPLATE_BYTES {
        report.error(at, format!("`{}` is longer than {MAX_TEMPLATE_BYTES} bytes", at.name()), None);
        return None;
    }
    match NameTemplate::parse(&text) {
        Ok(template) => Some(template),
        Err(error) => {
            let help = "write attributes as %{k8s.namespace.name} or %{k8s.namespace.name:-default}, dates as \
                        %{+yyyy.MM.dd}, and a percent sign as %%";
            let message = format!("`{}`: {} is not a template: {error}", at.name(), at.subject(&text));
            report.error(at, message, Some(help.into()));
            None
        }
    }
}

/// `allow_record_attributes`: the attributes that templates may take from the record itself, which whoever writes
/// the record chooses. `templates` are all templates of the exporter.
pub(crate) fn allow_record_attributes<'t>(
    fields: &mut FieldReader<'_, '_>,
    templates: impl IntoIterator<Item = &'t NameTemplate>,
) -> Vec<String> {
    let allowed = fields.get("allow_record_attributes", scalar::texts).unwrap_or_default();
    let used: Vec<&str> = templates.into_iter().flat_map(NameTemplate::attribute_keys).collect();
    for key in allowed.iter().filter(|key| !used.contains(&key.as_str())) {
        let at = fields.cursor_at("allow_record_attributes");
        let shown = at.quote(key);
        let message = format!("`allow_record_attributes` has no effect for {shown}: no name of the exporter uses it");
        fields.report.warning(&at, message, None);
    }
    allowed
}
