//! Structured metadata: the attributes of a line that are not labels.
//!
//! Names are those that Loki's own OTLP endpoint would give: what is no letter, digit or `_` becomes `_`, and maps are
//! flattened. *Guarantees.* A name occurs once, and no name is that of a label: an attribute of a record whose name is
//! taken gets the suffix `_extracted`, as in Loki, so that a line cannot replace what the resource says. Entries and
//! bytes stay within the limits; what does not fit is left out. The buffer grows only when its owner says so, who
//! reserves the memory.

use std::ops::Range;

use kubewake_config::model::StructuredMetadataConfig;
use kubewake_otlp::{
    view::{AnyValue, AttributesView, LogRecord, Resource, Scope},
    wire::{len_field_size, put_bytes, put_header},
};

use super::stream_labels::StreamLabels;

/// `Entry.structuredMetadata`
const METADATA_FIELD: u32 = 3;
const NAME_FIELD: u32 = 1;
const VALUE_FIELD: u32 = 2;

/// Appended to the name of an attribute whose name is taken.
const EXTRACTED_SUFFIX: &[u8] = b"_extracted";

/// Maps are flattened up to this depth; a deeper one is a value in JSON.
const MAX_FLATTENED_DEPTH: usize = 8;

/// The longest name. Longer ones are left out.
const MAX_NAME_BYTES: usize = 1024;

/// The bytes of an entry beside its name and value: tags and lengths.
const ENTRY_OVERHEAD_BYTES: usize = 16;

/// The first capacity of the buffer for fields.
const FIRST_BYTES: usize = 1 << 10;

/// Writes the metadata of one line after another.
pub(super) struct MetadataWriter<'s> {
    limits: StructuredMetadataConfig,
    labels: &'s StreamLabels,
    /// The fields written so far.
    fields: Vec<u8>,
    /// The names in them.
    names: Vec<Range<usize>>,
    /// The bytes of names and values.
    size: usize,
    /// Whether anything was left out.
    is_cut: bool,
    /// The capacity that is needed to go on.
    needed: usize,
    /// The name of the attribute that is being written.
    name: Vec<u8>,
}

/// What a line shares with others of its resource and scope.
#[derive(Clone, Copy, Default)]
pub(super) struct SharedMetadata {
    bytes: usize,
    names: usize,
    size: usize,
    is_cut: bool,
}

impl<'s> MetadataWriter<'s> {
    pub(super) fn new(limits: StructuredMetadataConfig, labels: &'s StreamLabels) -> Self {
        let fields = Vec::with_capacity(FIRST_BYTES);
        Self { limits, labels, fields, names: Vec::new(), size: 0, is_cut: false, needed: 0, name: Vec::new() }
    }

    /// The capacity that the buffer must have before the metadata can be written anew, if it is too small.
    pub(super) fn needed_capacity(&self) -> Option<usize> {
        (self.needed > self.fields.capacity()).then(|| self.needed.max(2 * self.fields.capacity()))
    }

    pub(super) fn grow(&mut self, capacity: usize) {
        self.fields.reserve_exact(capacity.saturating_sub(self.fields.len()));
    }

    /// Begins anew with what lines of this resource and scope share. With `omit_labels` the attributes that are labels
    /// are left out.
    pub(super) fn begin(&mut self, resource: &Resource<'_>, scope: &Scope<'_>, omit_labels: bool) -> SharedMetadata {
        self.rewind(SharedMetadata::default());
        for attribute in resource.attributes() {
            if !(omit_labels && self.labels.has_attribute(attribute.key())) {
                self.attribute(attribute.key(), &attribute.value());
            }
        }
        self.text(b"scope_name", scope.name());
        self.text(b"scope_version", scope.version());
        self.attributes(scope.attributes());
        SharedMetadata { bytes: self.fields.len(), names: self.names.len(), size: self.size, is_cut: self.is_cut }
    }

    /// Goes back to what lines share.
    pub(super) fn rewind(&mut self, shared: SharedMetadata) {
        self.fields.truncate(shared.bytes);
        self.names.truncate(shared.names);
        self.size = shared.size;
        self.is_cut = shared.is_cut;
    }

    /// Adds the fields and attributes of a record.
    pub(super) fn add_record(&mut self, record: &LogRecord<'_>) {
        self.text(b"severity_text", record.severity_text());
        if record.severity_number() != 0 {
            self.text(b"severity_number", record.severity_number().to_string().as_bytes());
        }
        self.hex(b"trace_id", record.trace_id());
        self.hex(b"span_id", record.span_id());
        self.text(b"event_name", record.event_name());
        self.attributes(record.attributes());
    }

    /// The fields of the entry.
    pub(super) fn as_fields(&self) -> &[u8] {
        &self.fields
    }

    /// Whether anything did not fit.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn attributes(&mut self, attributes: AttributesView<'_>) {
        for attribute in attributes {
            self.attribute(attribute.key(), &attribute.value());
        }
    }

    fn attribute(&mut self, key: &[u8], value: &AnyValue<'_>) {
        self.name.clear();
        self.extend_name(key);
        self.value(value, MAX_FLATTENED_DEPTH);
    }

    /// Writes a value under the current name. A map becomes several entries.
    fn value(&mut self, value: &AnyValue<'_>, depth: usize) {
        match (*value, depth.checked_sub(1)) {
            (AnyValue::None, _) => {}
            (AnyValue::KeyValueList(pairs), Some(depth)) => {
                let parent = self.name.len();
                for pair in pairs {
                    self.name.push(b'_');
                    self.extend_name(pair.key());
                    self.value(&pair.value(), depth);
                    self.name.truncate(parent);
                    if self.is_full() {
                        return;
                    }
                }
            }
            (value, _) => {
                let name = std::mem::take(&mut self.name);
                self.text(&name, &value.to_text());
                self.name = name;
            }
        }
    }

    fn extend_name(&mut self, key: &[u8]) {
        // One byte beyond the limit shows that the name is too long.
        let room = (MAX_NAME_BYTES + 1).saturating_sub(self.name.len());
        if self.name.is_empty() && key.first().is_some_and(u8::is_ascii_digit) {
            self.name.push(b'_');
        }
        let letters = key.iter().map(|byte| if byte.is_ascii_alphanumeric() { *byte } else { b'_' });
        self.name.extend(letters.take(room));
    }

    fn hex(&mut self, name: &[u8], id: &[u8]) {
        let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
        // An id has 16 bytes at most; others are no ids.
        let text: Vec<u8> = id.iter().take(16).flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        self.text(name, &text);
    }

    /// Writes an entry, unless the value is empty or there is no room for it.
    fn text(&mut self, name: &[u8], value: &[u8]) {
        if value.is_empty() || name.is_empty() {
            return;
        }
        let suffix = if self.is_taken(name, &[]) { EXTRACTED_SUFFIX } else { &[] };
        let room = (self.limits.max_bytes as usize).saturating_sub(self.size);
        let fits = name.len() <= MAX_NAME_BYTES && value.len() <= room && !self.is_full();
        if !fits || (!suffix.is_empty() && self.is_taken(name, suffix)) {
            self.is_cut = true;
            return;
        }
        let value = String::from_utf8_lossy(value);
        let name_bytes = name.len() + suffix.len();
        let size = name_bytes + value.len();
        if size > room {
            self.is_cut = true;
            return;
        }
        let needed = self.fields.len() + size + ENTRY_OVERHEAD_BYTES;
        if needed > self.fields.capacity() {
            self.needed = self.needed.max(needed);
            return;
        }
        let content = len_field_size(NAME_FIELD, name_bytes) + len_field_size(VALUE_FIELD, value.len());
        put_header(&mut self.fields, METADATA_FIELD, content);
        put_header(&mut self.fields, NAME_FIELD, name_bytes);
        let start = self.fields.len();
        self.fields.extend_from_slice(name);
        self.fields.extend_from_slice(suffix);
        put_bytes(&mut self.fields, VALUE_FIELD, value.as_bytes());
        self.names.push(start..start + name_bytes);
        self.size += size;
    }

    fn is_taken(&self, name: &[u8], suffix: &[u8]) -> bool {
        let is_same = |taken: &[u8]| {
            taken.len() == name.len() + suffix.len() && taken.starts_with(name) && taken.ends_with(suffix)
        };
        (suffix.is_empty() && self.labels.has_label(name))
            || self.names.iter().any(|range| self.fields.get(range.clone()).is_some_and(is_same))
    }

    fn is_full(&self) -> bool {
        self.names.len() >= self.limits.max_entries as usize
    }
}
