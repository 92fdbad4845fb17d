//! Reads the fields of a map. A decoder asks for every field that it knows; any other one is unknown.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use super::{cursor::Cursor, report::DecodeReport, scalar};
use crate::{
    problem::label,
    yaml::{NodeValue, YamlEntry},
};

/// Reads the fields of one map.
pub(crate) struct FieldReader<'a, 'r> {
    pub(crate) at: Cursor<'a>,
    pub(crate) report: &'r DecodeReport<'r>,
    left: HashMap<&'a str, &'a YamlEntry>,
    known: Vec<&'static str>,
    /// The number of errors before this map was read.
    errors: usize,
}

impl<'a, 'r> FieldReader<'a, 'r> {
    /// The fields of a map. A missing value counts as an empty map; any other value is an error and has no
    /// fields.
    pub(crate) fn new(at: &Cursor<'a>, report: &'r DecodeReport) -> Self {
        let errors = report.errors();
        let left = match &at.node.value {
            NodeValue::Map(entries) => {
                report.mark_keys_public(entries);
                entries.iter().map(|entry| (entry.key.text.as_str(), entry)).collect()
            }
            NodeValue::Null | NodeValue::Bad => HashMap::new(),
            _ => {
                scalar::wrong_type::<()>(at, report, "a map", None);
                HashMap::new()
            }
        };
        Self { at: at.clone(), report, left, known: Vec::new(), errors }
    }

    /// A field with a value.
    pub(crate) fn find(&mut self, name: &'static str) -> Option<Cursor<'a>> {
        self.find_even_empty(name).filter(|at| !at.node.is_absent())
    }

    /// A field that exists, even without a value: `grpc:`.
    pub(crate) fn find_even_empty(&mut self, name: &'static str) -> Option<Cursor<'a>> {
        self.known.push(name);
        self.left.remove(name).map(|entry| self.at.entry(entry))
    }

    /// The value of a field, if it exists and is valid.
    pub(crate) fn get<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'a>, &DecodeReport) -> Option<T>,
    ) -> Option<T> {
        let at = self.find(name)?;
        read(&at, self.report)
    }

    /// The value of a field that has a default.
    pub(crate) fn get_or<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&Cursor<'a>, &DecodeReport) -> Option<T>,
    ) -> T {
        self.get(name, read).unwrap_or(default)
    }

    /// A text; an empty one counts as absent.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.get(name, scalar::text).filter(|text| !text.is_empty())
    }

    /// The path of a file, mapped to where the file is; an empty one counts as absent.
    pub(crate) fn path(&mut self, name: &'static str) -> Option<PathBuf> {
        self.text(name).map(|path| self.report.locate(Path::new(&path)))
    }

    /// A boolean that is false by default.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        self.get_or(name, false, scalar::boolean)
    }

    /// `enabled`, which every optional section of the Collector has.
    pub(crate) fn enabled(&mut self) -> bool {
        self.get_or("enabled", true, scalar::boolean)
    }

    /// Fields that are checked, but neither have nor need an effect here.
    pub(crate) fn accept_without_effect<T>(
        &mut self,
        names: &[&'static str],
        read: impl Fn(&Cursor<'a>, &DecodeReport) -> Option<T>,
    ) {
        for name in names {
            self.get(name, &read);
        }
    }

    /// Warns about a field that is checked but has no effect here.
    pub(crate) fn warn_ineffective<T>(
        &mut self,
        name: &'static str,
        why: &str,
        read: impl FnOnce(&Cursor<'a>, &DecodeReport) -> Option<T>,
    ) {
        if let Some(at) = self.find(name)
            && read(&at, self.report).is_some()
        {
            self.report.warning(&at, format!("`{name}` has no effect: {why}"), None);
        }
    }

    /// Fields of the Collector that this build does not have. They are accepted with values that mean "not
    /// set": empty, zero, false.
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

    /// Reports a missing field, unless the field or its parent was reported already.
    pub(crate) fn require(&self, name: &str, message: &str, help: impl Into<Option<String>>) {
        if matches!(self.at.node.value, NodeValue::Map(_) | NodeValue::Null) && !self.failed(name) {
            self.report.missing(&self.at, name, message, help);
        }
    }

    /// Whether a field exists, valid or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.at.node.value {
            NodeValue::Map(entries) => entries.iter().any(|entry| entry.key.text == name && !entry.value.is_absent()),
            _ => false,
        }
    }

    /// Whether a field exists but could not be read, so that nothing more should be reported about it.
    pub(crate) fn failed(&self, name: &str) -> bool {
        let bad = match &self.at.node.value {
            NodeValue::Map(entries) => {
                entries.iter().any(|entry| entry.key.text == name && matches!(entry.value.value, NodeValue::Bad))
            }
            NodeValue::Bad => true,
            _ => false,
        };
        bad || self.report.error_within(self.errors, &self.at.join(name))
    }

    /// Whether anything in the map was reported already.
    pub(crate) fn any_failed(&self) -> bool {
        matches!(self.at.node.value, NodeValue::Bad) || self.report.errors() > self.errors
    }

    /// The position of a field, for checks of several fields; that of the map if there is no such field.
    pub(crate) fn cursor_at(&self, name: &str) -> Cursor<'a> {
        match &self.at.node.value {
            NodeValue::Map(entries) => entries
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

    /// Accepts a field with any value.
    pub(crate) fn accept_any(&mut self, name: &str) {
        self.left.remove(name);
    }

    /// Reports every field that was not asked for as unknown.
    pub(crate) fn finish(self) {
        for entry in self.unknown_entries() {
            let name = &entry.key.text;
            let help = self.report.suggest(name, &self.known, "known fields");
            let message = format!("unknown field `{}`", label(name));
            self.report.add_error(super::report::new_finding(self.at.join(name), entry.key.span, message, help));
        }
    }

    /// Warns about every field that was not asked for, where the Collector ignores such fields.
    pub(crate) fn warn_unknown(self) {
        for entry in self.unknown_entries() {
            let name = &entry.key.text;
            let help = self.report.suggest(name, &self.known, "known fields");
            let message = format!("the unknown field `{}` has no effect", label(name));
            self.report.add_warning(super::report::new_finding(self.at.join(name), entry.key.span, message, help));
        }
    }

    /// The fields that were not asked for, in the order of the text.
    fn unknown_entries(&self) -> impl Iterator<Item = &'a YamlEntry> {
        let entries = match &self.at.node.value {
            NodeValue::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().filter(|entry| self.left.contains_key(entry.key.text.as_str()))
    }
}

/// Whether a value differs from what means "not set" in the Collector.
fn says_something(at: &Cursor<'_>) -> bool {
    match &at.node.value {
        NodeValue::Null | NodeValue::Bad | NodeValue::Bool(false) | NodeValue::Int(0) => false,
        NodeValue::String(text) => !text.is_empty(),
        NodeValue::Seq(items) => !items.is_empty(),
        NodeValue::Map(entries) => {
            let off = |entry: &YamlEntry| entry.key.text == "enabled" && entry.value.value == NodeValue::Bool(false);
            !entries.is_empty() && !entries.iter().any(off)
        }
        _ => true,
    }
}
