//! Names from attributes: tenants, labels, indices and data streams.
//!
//! *Guarantees.* A value comes from the resource, or from the record if the settings allow exactly that attribute, and
//! then only if the resource has none: whoever writes a line does not choose where it goes. Values consist of the
//! characters that the rules allow, and have a maximum length; texts of the settings stay as they are.
//! [`DistinctNames`] bounds how many names there are.
//!
//! *Does not* check the name as a whole: what precedes a value, and how long the parts are together, is known to the
//! settings.

mod distinct_names;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use jiff::{Timestamp, tz::TimeZone};
use kubewake_config::model::{DateFormat, DatePart, NamePiece, NameTemplate};
use kubewake_otlp::view::{AnyValue, AttributesView, Resource};

pub(crate) use distinct_names::DistinctNames;

/// What a value of an attribute may consist of, as part of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameRules {
    /// The character to write instead of this one; most stand for themselves.
    pub(crate) sanitize: fn(char) -> char,
    /// The maximum length of a value, in bytes. A longer one is cut between characters.
    pub(crate) max_value_bytes: usize,
}

/// What a record's name is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameSubject<'a> {
    pub(crate) resource: Resource<'a>,
    /// The attributes of the record.
    pub(crate) attributes: AttributesView<'a>,
    /// The time of the record, in nanoseconds since 1970.
    pub(crate) time: u64,
}

/// No name: neither the attribute nor a default exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingAttribute;

/// Makes names from a template.
#[derive(Clone, Debug)]
pub(crate) struct NameResolver {
    template: NameTemplate,
    allowed: Vec<String>,
    rules: NameRules,
}

impl NameResolver {
    /// A resolver that takes the attributes in `allow_record_attributes` from records, too.
    pub(crate) fn new(template: NameTemplate, allow_record_attributes: &[String], rules: NameRules) -> Self {
        let keys: Vec<&str> = template.attribute_keys().collect();
        let allowed = allow_record_attributes.iter().filter(|key| keys.contains(&key.as_str())).cloned().collect();
        Self { template, allowed, rules }
    }

    /// Whether records of one resource may have different names.
    pub(crate) fn depends_on_record(&self) -> bool {
        !self.allowed.is_empty() || self.template.has_date()
    }

    /// Appends the name of a record. After an error `out` is as it was.
    pub(crate) fn resolve(&self, subject: &NameSubject<'_>, out: &mut String) -> Result<(), MissingAttribute> {
        let before = out.len();
        for piece in self.template.pieces() {
            match piece {
                NamePiece::Text(text) => out.push_str(text),
                NamePiece::Date(format) => push_date(format, subject.time, out),
                NamePiece::Attribute { key, default } => {
                    if self.push_value(key, subject, out) {
                        continue;
                    }
                    let Some(default) = default else {
                        out.truncate(before);
                        return Err(MissingAttribute);
                    };
                    out.push_str(default);
                }
            }
        }
        Ok(())
    }

    /// Appends the value of an attribute; false if it is missing, empty, or no scalar.
    fn push_value(&self, key: &str, subject: &NameSubject<'_>, out: &mut String) -> bool {
        if self.push_sanitized(subject.resource.attributes().get(key), out) {
            return true;
        }
        let is_allowed = self.allowed.iter().any(|allowed| allowed == key);
        is_allowed && self.push_sanitized(subject.attributes.get(key), out)
    }

    fn push_sanitized(&self, value: Option<AnyValue<'_>>, out: &mut String) -> bool {
        let text = match value {
            Some(value @ (AnyValue::String(_) | AnyValue::Int(_) | AnyValue::Bool(_))) => value.to_text(),
            _ => return false,
        };
        let before = out.len();
        for chunk in text.utf8_chunks() {
            let invalid = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            for character in chunk.valid().chars().chain(invalid) {
                let allowed = (self.rules.sanitize)(character);
                if out.len() - before + allowed.len_utf8() > self.rules.max_value_bytes {
                    return true;
                }
                out.push(allowed);
            }
        }
        out.len() > before
    }
}

fn push_date(format: &DateFormat, nanoseconds: u64, out: &mut String) {
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or(Timestamp::UNIX_EPOCH);
    let date = TimeZone::UTC.to_datetime(time);
    for part in format.parts() {
        // Writing to a string does not fail.
        let _ = match part {
            DatePart::Year => write!(out, "{:04}", date.year()),
            DatePart::Month => write!(out, "{:02}", date.month()),
            DatePart::Day => write!(out, "{:02}", date.day()),
            DatePart::Hour => write!(out, "{:02}", date.hour()),
            DatePart::Separator(character) => write!(out, "{character}"),
        };
    }
}
