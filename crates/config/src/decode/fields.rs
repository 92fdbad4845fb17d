//! The fields of a map. Whoever reads one names every field there is; what is left over is unknown.

use std::collections::HashMap;

use super::{cursor::Cursor, report::Report, scalar};
use crate::{
    problem::label,
    yaml::{Entry, Value},
};

/// Reads the fields of one map.
pub(crate) struct Fields<'a, 'r> {
    pub(crate) at: Cursor<'a>,
    pub(crate) report: &'r Report,
    left: HashMap<&'a str, &'a Entry>,
    known: Vec<&'static str>,
    /// How many errors there were before.
    errors: usize,
}

impl<'a, 'r> Fields<'a, 'r> {
    /// The fields of a map. Nothing at all is an empty map; anything else is an error and has no fields.
    pub(crate) fn of(at: &Cursor<'a>, report: &'r Report) -> Self {
        let errors = report.errors();
        let left = match &at.node.value {
            Value::Map(entries) => {
                report.has_public_keys(entries);
                entries.iter().map(|entry| (entry.key.text.as_str(), entry)).collect()
            }
            Value::Null | Value::Bad => HashMap::new(),
            _ => {
                scalar::wrong_type::<()>(at, report, "a map", None);
                HashMap::new()
            }
        };
        Self { at: at.clone(), report, left, known: Vec::new(), errors }
    }

    /// A field that is there and says something.
    pub(crate) fn find(&mut self, name: &'static str) -> Option<Cursor<'a>> {
        self.find_even_empty(name).filter(|at| !at.node.is_absent())
    }

    /// A field that is there, even without a value: `grpc:`.
    pub(crate) fn find_even_empty(&mut self, name: &'static str) -> Option<Cursor<'a>> {
        self.known.push(name);
        self.left.remove(name).map(|entry| self.at.entry(entry))
    }

    /// The value of a field, if it is there and right.
    pub(crate) fn get<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'a>, &Report) -> Option<T>,
    ) -> Option<T> {
        let at = self.find(name)?;
        read(&at, self.report)
    }

    /// The value of a field that has a default.
    pub(crate) fn get_or<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&Cursor<'a>, &Report) -> Option<T>,
    ) -> T {
        self.get(name, read).unwrap_or(default)
    }

    /// A text; empty counts as absent.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.get(name, scalar::text).filter(|text| !text.is_empty())
    }

    /// A boolean that is false by default.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        self.get_or(name, false, scalar::boolean)
    }

    /// `enabled`, which every optional section of the Collector has.
    pub(crate) fn enabled(&mut self) -> bool {
        self.get_or("enabled", true, scalar::boolean)
    }

    /// Fields that are checked and have no effect here, nor need one.
    pub(crate) fn idle<T>(&mut self, names: &[&'static str], read: impl Fn(&Cursor<'a>, &Report) -> Option<T>) {
        for name in names {
            self.get(name, &read);
        }
    }

    /// A field that is checked and has no effect here, which whoever set it should know.
    pub(crate) fn ineffective<T>(
        &mut self,
        name: &'static str,
        why: &str,
        read: impl FnOnce(&Cursor<'a>, &Report) -> Option<T>,
    ) {
        if let Some(at) = self.find(name)
            && read(&at, self.report).is_some()
        {
            self.report.warning(&at, format!("`{name}` has no effect: {why}"), None);
        }
    }

    /// Fields of the Collector that this build does not have. They may be there if they say nothing: empty, zero, off.
    pub(crate) fn unsupported(&mut self, names: &[&'static str]) {
        for name in names {
            let entry = self.left.remove(name).map(|entry| self.at.entry(entry));
            if let Some(at) = entry
                && says_something(&at)
            {
                self.report.error(&at, format!("`{name}` is not supported by this build"), Some("remove it".into()));
            }
        }
    }

    /// Says that a field must be there, unless it or what should hold it was reported already.
    pub(crate) fn require(&self, name: &str, message: &str, help: impl Into<Option<String>>) {
        if matches!(self.at.node.value, Value::Map(_) | Value::Null) && !self.failed(name) {
            self.report.missing(&self.at, name, message, help);
        }
    }

    /// Whether a field was given, in whatever state.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.at.node.value {
            Value::Map(entries) => entries.iter().any(|entry| entry.key.text == name && !entry.value.is_absent()),
            _ => false,
        }
    }

    /// Whether a field was given but could not be read, so that nothing more is to be said about it.
    pub(crate) fn failed(&self, name: &str) -> bool {
        let bad = match &self.at.node.value {
            Value::Map(entries) => {
                entries.iter().any(|entry| entry.key.text == name && matches!(entry.value.value, Value::Bad))
            }
            Value::Bad => true,
            _ => false,
        };
        bad || self.report.error_within(self.errors, &self.at.join(name))
    }

    /// Whether anything in the map was reported already.
    pub(crate) fn any_failed(&self) -> bool {
        matches!(self.at.node.value, Value::Bad) || self.report.errors() > self.errors
    }

    /// Where a field stands, for checks that need more than one; the map itself if it is not there.
    pub(crate) fn place(&self, name: &str) -> Cursor<'a> {
        match &self.at.node.value {
            Value::Map(entries) => entries
                .iter()
                .find(|entry| entry.key.text == name)
                .map_or_else(|| self.at.clone(), |entry| self.at.entry(entry)),
            _ => self.at.clone(),
        }
    }

    /// The fields that were asked for so far.
    pub(crate) fn known(&self) -> &[&'static str] {
        &self.known
    }

    /// A field that may be there, whatever it says.
    pub(crate) fn skip(&mut self, name: &str) {
        self.left.remove(name);
    }

    /// Every field that nobody asked for is unknown.
    pub(crate) fn finish(self) {
        let Value::Map(entries) = &self.at.node.value else { return };
        for entry in entries.iter().filter(|entry| self.left.contains_key(entry.key.text.as_str())) {
            let name = &entry.key.text;
            let help = self.report.suggest(name, &self.known, "known fields");
            self.report.add_error(super::report::finding(
                self.at.join(name),
                entry.key.span,
                format!("unknown field `{}`", label(name)),
                help,
            ));
        }
    }
}

/// Whether a value is other than what stands for "not set" in the Collector.
fn says_something(at: &Cursor<'_>) -> bool {
    match &at.node.value {
        Value::Null | Value::Bad | Value::Bool(false) | Value::Int(0) => false,
        Value::String(text) => !text.is_empty(),
        Value::Seq(items) => !items.is_empty(),
        Value::Map(entries) => {
            let off = |entry: &Entry| entry.key.text == "enabled" && entry.value.value == Value::Bool(false);
            !entries.is_empty() && !entries.iter().any(off)
        }
        _ => true,
    }
}
