//! `redaction`: removes attributes that are not allowed, and masks values that must not leave.
//!
//! *Guarantees.* Looks at the attributes of resources, scopes, spans, their events, log records and data points, and at the bodies of
//! log records, as deep as they go; what lies deeper than anything that is read here is masked as a whole. *Does not* look at the names of spans and metrics, at messages of a status, at links or at
//! exemplars, as in the Collector; nor into attributes whose value is a list or a map, unless `redact_all_types` says to take
//! these as text.

mod body;
mod keys;
mod mask;
mod summary;

use std::sync::{Arc, Mutex, PoisonError};

use kubewake_config::model;
use kubewake_otlp::{
    Allowance, AttributeList, Change, Edit, Editor, Edits, NoMemory, Signal, Value, Verdict, rewrite_within,
    view::{KeyValue, Point, RecordRef, Resource, Scope},
};

use self::{
    keys::{Judged, Keys},
    mask::Mask,
    summary::{Found, Summary},
};
use super::map::{Mapped, Mapper};
use crate::core::Part;

/// The processor.
pub struct Redaction(Arc<Rules>);

impl Redaction {
    /// The processor that these settings describe.
    pub fn new(settings: model::Redaction) -> Self {
        let mask = Mask::new(settings.hash_function.as_ref());
        Self(Arc::new(Rules { settings, mask }))
    }
}

impl Mapper for Redaction {
    fn map(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Mapped, NoMemory> {
        let pass: Arc<dyn Change> = Arc::new(Pass { rules: self.0.clone(), keys: Mutex::default() });
        let mut editor =
            Everything { rules: &self.0, attributes: Edit::with(pass.clone()), events: Edit::events(pass) };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(Mapped { bytes, items: part.items })
    }
}

/// What is allowed, and what is done about the rest.
#[derive(Debug)]
struct Rules {
    settings: model::Redaction,
    mask: Mask,
}

impl Rules {
    fn ignores(&self, key: &[u8]) -> bool {
        self.settings.ignored_keys.matches(key)
            || self.settings.ignored_key_patterns.iter().any(|pattern| pattern.is_match(key))
    }

    /// What it adds itself it does not remove.
    fn removes(&self, key: &[u8]) -> bool {
        !self.settings.allow_all_keys && !self.settings.allowed_keys.matches(key) && !summary::is_own(key)
    }

    fn masks_key(&self, key: &[u8]) -> bool {
        self.settings.blocked_key_patterns.iter().any(|pattern| pattern.is_match(key))
    }

    fn allows_value(&self, text: &[u8]) -> bool {
        self.settings.allowed_values.iter().any(|pattern| pattern.is_match(text))
    }

    /// The text with all masked that must be; `None` if that is nothing.
    fn masked(&self, text: &[u8]) -> Option<Value> {
        self.mask.matches(&self.settings.blocked_values, text)
    }

    fn found(&self) -> Found {
        Found::new(self.settings.summary)
    }

    /// What a key decides, whatever its value is.
    fn judge(&self, key: &[u8]) -> Judged {
        match key {
            key if self.ignores(key) => Judged::Ignored,
            key if self.removes(key) => Judged::Removed,
            key if self.masks_key(key) => Judged::Masked,
            _ => Judged::ByValue,
        }
    }

    fn attribute(&self, attribute: KeyValue<'_>, keys: &mut Keys, found: &mut Found) -> Verdict {
        let (key, value) = (attribute.key(), attribute.value());
        let judged = keys.judge(key, |key| self.judge(key));
        match judged {
            Judged::Ignored => {
                found.ignored();
                return Verdict::Keep;
            }
            Judged::Removed => {
                found.redacted(key);
                return Verdict::Remove;
            }
            Judged::Masked | Judged::ByValue => {}
        }
        let text = match self.settings.redact_all_types {
            true => value.to_text(),
            false => value.as_text().unwrap_or_default().into(),
        };
        if self.allows_value(&text) {
            found.allowed(key);
            return Verdict::Keep;
        }
        let masked = if judged == Judged::Masked { Some(self.mask.whole(&text)) } else { self.masked(&text) };
        match masked {
            Some(value) => {
                found.masked(key);
                Verdict::Set(value)
            }
            None => Verdict::Keep,
        }
    }
}

/// The rules, at work on one request.
#[derive(Debug)]
struct Pass {
    rules: Arc<Rules>,
    /// Locked for each list of attributes, by the one thread that is at work.
    keys: Mutex<Keys>,
}

impl Change for Pass {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        let mut found = self.rules.found();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        attributes.visit(|attribute| self.rules.attribute(attribute, &mut keys, &mut found));
        found.write(attributes, &Summary::ATTRIBUTES);
    }
}

struct Everything<'r> {
    rules: &'r Rules,
    attributes: Edit,
    events: Edit,
}

impl Editor for Everything<'_> {
    fn resource(&mut self, _: Resource<'_>, edits: &mut Edits) {
        edits.push(self.attributes.clone());
    }

    fn scope(&mut self, _: Scope<'_>, edits: &mut Edits) {
        edits.push(self.attributes.clone());
    }

    fn record(&mut self, record: &RecordRef<'_>, edits: &mut Edits) {
        edits.push(self.attributes.clone());
        if let Some(record) = record.log() {
            body::redact(self.rules, record.body(), edits);
        } else {
            edits.push(self.events.clone());
        }
    }

    fn point(&mut self, _: &RecordRef<'_>, _: &Point<'_>, edits: &mut Edits) {
        edits.push(self.attributes.clone());
    }
}

#[cfg(test)]
mod tests;
