//! `redaction`: removes attributes that are not allowed, and masks sensitive values.
//!
//! *Guaranteed*: covers the attributes of resources, scopes, spans, their events, log records and data points,
//! and the bodies of log records at any depth; values nested deeper than the reader's limit are masked as a
//! whole. *Not done*, as in the Collector: names of spans and metrics, status messages, links and exemplars;
//! and attributes whose value is a list or a map, unless `redact_all_types` is set, which masks these as text.

mod body;
mod key_decisions;
mod mask;
mod summary;

use std::sync::Arc;

use kubewake_config::model;
use kubewake_otlp::{
    Allowance, AttributeChange, AttributeDisposition, AttributeList, EditList, MessageEdit, NoMemory, RecordEditor,
    Signal, Value, rewrite_within,
    view::{DataPoint, KeyValue, RecordRef, Resource, Scope},
};
use kubewake_runtime::lock::Mutex;

use self::{
    key_decisions::{KeyDecision, KeyDecisionCache},
    mask::ValueMask,
    summary::{RedactionReport, ReportAttributes},
};
use super::transform::{RequestTransform, TransformedRequest};
use crate::{
    components::{BuildError, PreparedProcessor, ProcessorContext},
    core::Part,
};

pub(crate) fn prepare(
    settings: &model::RedactionProcessor,
    _: &ProcessorContext<'_>,
) -> Result<PreparedProcessor, BuildError> {
    let settings = settings.clone();
    Ok(PreparedProcessor::transform(|_, _| RedactionTransform::new(settings)))
}

pub struct RedactionTransform(Arc<RedactionRules>);

impl RedactionTransform {
    pub fn new(settings: model::RedactionProcessor) -> Self {
        let mask = ValueMask::new(settings.hash_function.as_ref());
        Self(Arc::new(RedactionRules { settings, mask }))
    }
}

impl RequestTransform for RedactionTransform {
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory> {
        let pass: Arc<dyn AttributeChange> = Arc::new(RedactionPass { rules: self.0.clone(), keys: Mutex::default() });
        let mut editor = RedactionEditor {
            rules: &self.0,
            attributes: MessageEdit::apply_change(pass.clone()),
            events: MessageEdit::events(pass),
        };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(TransformedRequest { bytes, items: part.items })
    }
}

/// The allowed keys and values, and the masking of everything else.
#[derive(Debug)]
struct RedactionRules {
    settings: model::RedactionProcessor,
    mask: ValueMask,
}

impl RedactionRules {
    fn ignores(&self, key: &[u8]) -> bool {
        self.settings.ignored_keys.matches(key)
            || self.settings.ignored_key_patterns.iter().any(|pattern| pattern.is_match(key))
    }

    /// Whether a key is removed. The processor's own report attributes stay.
    fn removes(&self, key: &[u8]) -> bool {
        !self.settings.allow_all_keys && !self.settings.allowed_keys.matches(key) && !summary::is_report_attribute(key)
    }

    fn masks_key(&self, key: &[u8]) -> bool {
        self.settings.blocked_key_patterns.iter().any(|pattern| pattern.is_match(key))
    }

    fn allows_value(&self, text: &[u8]) -> bool {
        self.settings.allowed_values.iter().any(|pattern| pattern.is_match(text))
    }

    /// The text with all blocked matches masked; `None` if there are none.
    fn mask_blocked(&self, text: &[u8]) -> Option<Value> {
        self.mask.mask_matches(&self.settings.blocked_values, text)
    }

    fn new_report(&self) -> RedactionReport {
        RedactionReport::new(self.settings.summary)
    }

    /// The decision that follows from a key alone.
    fn decide_key(&self, key: &[u8]) -> KeyDecision {
        match key {
            key if self.ignores(key) => KeyDecision::Ignored,
            key if self.removes(key) => KeyDecision::Removed,
            key if self.masks_key(key) => KeyDecision::Masked,
            _ => KeyDecision::ByValue,
        }
    }

    fn redact_attribute(
        &self,
        attribute: KeyValue<'_>,
        keys: &mut KeyDecisionCache,
        found: &mut RedactionReport,
    ) -> AttributeDisposition {
        let key = attribute.key();
        let value = attribute.value();
        let judged = keys.get_or_decide(key, |key| self.decide_key(key));
        match judged {
            KeyDecision::Ignored => {
                found.ignored();
                return AttributeDisposition::Keep;
            }
            KeyDecision::Removed => {
                found.redacted(key);
                return AttributeDisposition::Remove;
            }
            KeyDecision::Masked | KeyDecision::ByValue => {}
        }
        let text =
            if self.settings.redact_all_types { value.to_text() } else { value.as_text().unwrap_or_default().into() };
        if self.allows_value(&text) {
            found.allowed(key);
            return AttributeDisposition::Keep;
        }
        let masked =
            if judged == KeyDecision::Masked { Some(self.mask.mask_whole(&text)) } else { self.mask_blocked(&text) };
        match masked {
            Some(value) => {
                found.masked(key);
                AttributeDisposition::Set(value)
            }
            None => AttributeDisposition::Keep,
        }
    }
}

/// Applies the rules to one request.
#[derive(Debug)]
struct RedactionPass {
    rules: Arc<RedactionRules>,
    /// Locked for each list of attributes, by the only thread that works on the request.
    keys: Mutex<KeyDecisionCache>,
}

impl AttributeChange for RedactionPass {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        let mut found = self.rules.new_report();
        let mut keys = self.keys.lock();
        attributes.visit(|attribute| self.rules.redact_attribute(attribute, &mut keys, &mut found));
        found.write(attributes, &ReportAttributes::ATTRIBUTES);
    }
}

struct RedactionEditor<'r> {
    rules: &'r RedactionRules,
    attributes: MessageEdit,
    events: MessageEdit,
}

impl RecordEditor for RedactionEditor<'_> {
    fn resource(&mut self, _: Resource<'_>, edits: &mut EditList) {
        edits.push(self.attributes.clone());
    }

    fn scope(&mut self, _: Scope<'_>, edits: &mut EditList) {
        edits.push(self.attributes.clone());
    }

    fn record(&mut self, record: &RecordRef<'_>, edits: &mut EditList) {
        edits.push(self.attributes.clone());
        if let Some(record) = record.log() {
            body::redact_body(self.rules, record.body(), edits);
        } else {
            edits.push(self.events.clone());
        }
    }

    fn point(&mut self, _: &RecordRef<'_>, _: &DataPoint<'_>, edits: &mut EditList) {
        edits.push(self.attributes.clone());
    }
}

#[cfg(test)]
mod tests;
