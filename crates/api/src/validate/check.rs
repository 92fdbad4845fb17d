//! What is known while a pipeline is checked, and what was found so far.

use jiff::Timestamp;
use kubewake_config::Secret;

use super::Problem;
use crate::{
    Found, Pipeline, Reason, Reference, Resolved,
    v1alpha1::ValueType,
    valid::{Piece, key},
};

/// Longer than any credential, and short enough for hundreds of them in one Secret.
const MAX_TEXT: usize = 16 << 10;
/// A bundle of many authorities.
pub(super) const MAX_PEM: usize = 128 << 10;

pub(super) struct Check<'a> {
    pipeline: &'a Pipeline,
    resolved: Option<&'a Resolved>,
    pub(super) now: Timestamp,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// When the first certificate expires that is valid now.
    pub(super) expires: Option<Timestamp>,
}

/// A text, and where it came from.
pub(super) struct Known {
    pub(super) text: String,
    /// The revision of the object that it stands in; none for one that stands in the resource.
    pub(super) revision: Option<String>,
}

impl<'a> Check<'a> {
    pub(super) fn new(pipeline: &'a Pipeline, resolved: Option<&'a Resolved>, now: Timestamp) -> Self {
        Self { pipeline, resolved, now, problems: Vec::new(), warnings: Vec::new(), expires: None }
    }

    pub(super) fn refuse(&mut self, path: impl Into<String>, reason: Reason, message: impl Into<String>) {
        self.problems.push(Problem { path: path.into(), reason, message: message.into() });
    }

    pub(super) fn warn(&mut self, path: impl Into<String>, reason: Reason, message: impl Into<String>) {
        self.warnings.push(Problem { path: path.into(), reason, message: message.into() });
    }

    /// The text of a value; `None` if that is wrong, or not known.
    ///
    /// A line break at its end is not a part of it: that is how most tools write files that become Secrets.
    pub(super) fn text(&mut self, path: &str, value: &ValueType) -> Option<Known> {
        let known = self.any_text(path, value, MAX_TEXT)?;
        let text = known.text.strip_suffix('\n').unwrap_or(&known.text);
        let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
        if text.is_empty() {
            let reason = if known.revision.is_some() { Reason::SecretInvalid } else { Reason::SpecInvalid };
            self.refuse(path, reason, "is empty");
            return None;
        }
        Some(Known { text, revision: known.revision })
    }

    /// As [`Check::text`], as it is.
    pub(super) fn any_text(&mut self, path: &str, value: &ValueType, most: usize) -> Option<Known> {
        let known = match (&value.value, &value.value_from) {
            (Some(text), None) => Known { text: text.clone(), revision: None },
            (None, Some(from)) if from.secret_key_ref.is_some() != from.config_map_key_ref.is_some() => {
                self.found(path, value)?
            }
            (None, Some(_)) => {
                let path = format!("{path}.valueFrom");
                self.refuse(path, Reason::SpecInvalid, "set either `secretKeyRef` or `configMapKeyRef`");
                return None;
            }
            _ => {
                self.refuse(path, Reason::SpecInvalid, "set either `value` or `valueFrom`");
                return None;
            }
        };
        if known.text.len() > most {
            let reason = if known.revision.is_some() { Reason::SecretInvalid } else { Reason::SpecInvalid };
            self.refuse(path, reason, format!("is longer than {most} bytes"));
            return None;
        }
        Some(known)
    }

    fn found(&mut self, path: &str, value: &ValueType) -> Option<Known> {
        let reference = Reference::of(value)?;
        let (reason, message) = match self.resolved?.get(&reference) {
            Found::Value { text, revision } => {
                return Some(Known { text: text.reveal().to_owned(), revision: Some(revision.clone()) });
            }
            Found::NoObject => (Reason::SecretMissing, format!("{reference} does not exist")),
            Found::NoKey => (Reason::SecretMissing, format!("{reference} has no key `{}`", reference.key)),
            Found::NotText => {
                (Reason::SecretInvalid, format!("the key `{}` of {reference} is not UTF-8 text", reference.key))
            }
            Found::Unreadable(why) => (Reason::SecretUnreadable, format!("{reference} cannot be read: {why}")),
        };
        self.refuse(path, reason, message);
        None
    }

    /// A text that is in no document: a key of the Secret that collectors read.
    pub(super) fn hidden(&self, field: &str, text: String, revision: Option<&str>) -> Piece {
        Piece::Hidden { key: key(self.pipeline, field, revision), text: Secret::new(text) }
    }
}
