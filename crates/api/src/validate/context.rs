//! The input of a validation, and its findings so far.

use jiff::Timestamp;
use kubewake_config::SecretString;

use super::SpecProblem;
use crate::{
    ConditionReason, ReferencedValue, ResolvedReferences, TelemetryPipeline, ValueReference,
    v1alpha1::ValueType,
    valid_pipeline::{DocumentText, secret_key},
};

/// Longer than any credential, and short enough for hundreds of them in one Secret.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// Room for a bundle of many authorities.
pub(super) const MAX_PEM_BYTES: usize = 128 << 10;

pub(super) struct ValidationContext<'a> {
    pipeline: &'a TelemetryPipeline,
    resolved: Option<&'a ResolvedReferences>,
    pub(super) now: Timestamp,
    pub(super) problems: Vec<SpecProblem>,
    pub(super) warnings: Vec<SpecProblem>,
    /// When the first currently valid certificate expires.
    pub(super) expires: Option<Timestamp>,
}

/// A text and its origin.
pub(super) struct ResolvedText {
    pub(super) text: String,
    /// The revision of the object that it comes from; none for one in the resource itself.
    pub(super) revision: Option<String>,
}

impl<'a> ValidationContext<'a> {
    pub(super) fn new(
        pipeline: &'a TelemetryPipeline,
        resolved: Option<&'a ResolvedReferences>,
        now: Timestamp,
    ) -> Self {
        Self { pipeline, resolved, now, problems: Vec::new(), warnings: Vec::new(), expires: None }
    }

    pub(super) fn refuse(&mut self, path: impl Into<String>, reason: ConditionReason, message: impl Into<String>) {
        self.problems.push(SpecProblem { path: path.into(), reason, message: message.into() });
    }

    pub(super) fn warn(&mut self, path: impl Into<String>, reason: ConditionReason, message: impl Into<String>) {
        self.warnings.push(SpecProblem { path: path.into(), reason, message: message.into() });
    }

    /// The text of a value; `None` if it is invalid or not known.
    ///
    /// A trailing line break is removed: most tools write files that become Secrets with one.
    pub(super) fn text(&mut self, path: &str, value: &ValueType) -> Option<ResolvedText> {
        let known = self.any_text(path, value, MAX_TEXT_BYTES)?;
        let text = known.text.strip_suffix('\n').unwrap_or(&known.text);
        let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
        if text.is_empty() {
            let reason =
                if known.revision.is_some() { ConditionReason::SecretInvalid } else { ConditionReason::SpecInvalid };
            self.refuse(path, reason, "is empty");
            return None;
        }
        Some(ResolvedText { text, revision: known.revision })
    }

    /// The text of a value, without removing a line break.
    pub(super) fn any_text(&mut self, path: &str, value: &ValueType, most: usize) -> Option<ResolvedText> {
        let known = match (&value.value, &value.value_from) {
            (Some(text), None) => ResolvedText { text: text.clone(), revision: None },
            (None, Some(from)) if from.secret_key_ref.is_some() != from.config_map_key_ref.is_some() => {
                self.lookup_value(path, value)?
            }
            (None, Some(_)) => {
                let path = format!("{path}.valueFrom");
                self.refuse(path, ConditionReason::SpecInvalid, "set either `secretKeyRef` or `configMapKeyRef`");
                return None;
            }
            _ => {
                self.refuse(path, ConditionReason::SpecInvalid, "set either `value` or `valueFrom`");
                return None;
            }
        };
        if known.text.len() > most {
            let reason =
                if known.revision.is_some() { ConditionReason::SecretInvalid } else { ConditionReason::SpecInvalid };
            self.refuse(path, reason, format!("is longer than {most} bytes"));
            return None;
        }
        Some(known)
    }

    fn lookup_value(&mut self, path: &str, value: &ValueType) -> Option<ResolvedText> {
        let reference = ValueReference::from_value(value)?;
        let (reason, message) = match self.resolved?.get(&reference) {
            ReferencedValue::Value { text, revision } => {
                return Some(ResolvedText { text: text.reveal().to_owned(), revision: Some(revision.clone()) });
            }
            ReferencedValue::NoObject => (ConditionReason::SecretMissing, format!("{reference} does not exist")),
            ReferencedValue::NoKey => {
                (ConditionReason::SecretMissing, format!("{reference} has no key `{}`", reference.key))
            }
            ReferencedValue::NotText => (
                ConditionReason::SecretInvalid,
                format!("the key `{}` of {reference} is not UTF-8 text", reference.key),
            ),
            ReferencedValue::Unreadable(why) => {
                (ConditionReason::SecretUnreadable, format!("{reference} cannot be read: {why}"))
            }
        };
        self.refuse(path, reason, message);
        None
    }

    /// A text that is in no document: a key of the Secret that collectors read.
    pub(super) fn secret_text(&self, field: &str, text: String, revision: Option<&str>) -> DocumentText {
        DocumentText::SecretKey { key: secret_key(self.pipeline, field, revision), text: SecretString::new(text) }
    }
}
