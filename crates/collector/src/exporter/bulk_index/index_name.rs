//! Names of indices and data streams.
//!
//! *Guarantees.* A name is one that Elasticsearch and OpenSearch take, whatever the attributes hold, and no name of
//! another kind: values are in lower case, without the characters that names must not have, and not too long. At most
//! so many names are in use at once; records with another one go to one index whose name has `overflow` in the place
//! of all attributes and dates.

use std::sync::atomic::{AtomicBool, Ordering};

use kubewake_config::{
    ComponentId,
    model::{BulkIndexConfig, MappingMode, NamePiece, NameTemplate, is_index_character},
};
use kubewake_otlp::Signal;

use crate::exporter::{
    name_resolver::{DistinctNames, NameResolver, NameRules, NameSubject},
    record_json::{FieldList, FieldValue, JsonOutput, ObjectWriter},
};

#[cfg(test)]
mod tests;

/// The most bytes of the name of an index.
const MAX_INDEX_BYTES: usize = 255;
/// The most bytes of a dataset or namespace. An index can have several values of this length.
const MAX_VALUE_BYTES: usize = 100;
/// What stands for all attributes and dates when there are too many names.
const OVERFLOW: &str = "overflow";

const INDEX_RULES: NameRules = NameRules { sanitize: index_character, max_value_bytes: MAX_VALUE_BYTES };
const DATASET_RULES: NameRules = NameRules { sanitize: dataset_character, max_value_bytes: MAX_VALUE_BYTES };

fn index_character(character: char) -> char {
    let lower = character.to_lowercase().next().unwrap_or('_');
    if is_index_character(lower) { lower } else { '_' }
}

/// Hyphens separate the parts of the name of a data stream.
fn dataset_character(character: char) -> char {
    match index_character(character) {
        '-' => '_',
        character => character,
    }
}

/// The parts of the name of a data stream.
#[derive(Debug, Default)]
pub(super) struct StreamName {
    pub(super) kind: &'static str,
    pub(super) dataset: String,
    pub(super) namespace: String,
}

impl StreamName {
    /// Writes an object of the parts.
    pub(super) fn push(&self, out: &mut JsonOutput<'_>) {
        let mut object = ObjectWriter::begin(out);
        object.text("type", self.kind.as_bytes());
        object.text("dataset", self.dataset.as_bytes());
        object.text("namespace", self.namespace.as_bytes());
        object.end();
    }

    /// Adds members of the parts.
    pub(super) fn add_to<'a>(&'a self, fields: &mut FieldList<'a, '_, '_>) {
        fields.field("", b"data_stream.type", FieldValue::Name(self.kind));
        fields.text("data_stream.dataset", self.dataset.as_bytes());
        fields.text("data_stream.namespace", self.namespace.as_bytes());
    }
}

/// The index of a record, in buffers that are used again.
#[derive(Debug, Default)]
pub(super) struct RecordIndex {
    pub(super) name: String,
    stream: StreamName,
    is_stream: bool,
}

impl RecordIndex {
    /// The data stream, if it is one.
    pub(super) fn stream(&self) -> Option<&StreamName> {
        self.is_stream.then_some(&self.stream)
    }
}

enum IndexKind {
    Stream {
        kind: &'static str,
        prefix: String,
        dataset: NameResolver,
        dataset_suffix: &'static str,
        namespace: NameResolver,
    },
    Index(NameResolver),
}

/// Makes the names for records of one kind.
pub(super) struct IndexNames {
    exporter: ComponentId,
    kind: IndexKind,
    names: DistinctNames,
    overflow: RecordIndex,
    has_overflowed: AtomicBool,
}

impl IndexNames {
    pub(super) fn new(settings: &BulkIndexConfig, signal: Signal, exporter: ComponentId) -> Self {
        let allowed = settings.allow_record_attributes.as_slice();
        let mut overflow = RecordIndex::default();
        let kind = match settings.index(signal) {
            Some(template) => {
                overflow.name = overflow_name(template);
                IndexKind::Index(NameResolver::new(template.clone(), allowed, INDEX_RULES))
            }
            None => {
                let kind = signal.name();
                let dataset_suffix = if settings.mode == MappingMode::Otel { ".otel" } else { "" };
                let prefix = format!("{}{kind}", settings.stream_prefix);
                overflow.is_stream = true;
                overflow.stream = StreamName {
                    kind,
                    dataset: overflow_name(&settings.dataset) + dataset_suffix,
                    namespace: overflow_name(&settings.namespace),
                };
                overflow.name = format!("{prefix}-{}-{}", overflow.stream.dataset, overflow.stream.namespace);
                let resolver = |template: &NameTemplate, rules| NameResolver::new(template.clone(), allowed, rules);
                IndexKind::Stream {
                    kind,
                    prefix,
                    dataset: resolver(&settings.dataset, DATASET_RULES),
                    dataset_suffix,
                    namespace: resolver(&settings.namespace, INDEX_RULES),
                }
            }
        };
        let names = DistinctNames::new(usize::try_from(settings.max_indices).unwrap_or(usize::MAX));
        Self { exporter, kind, names, overflow, has_overflowed: AtomicBool::new(false) }
    }

    /// Whether records of one resource may have different names.
    pub(super) fn depends_on_record(&self) -> bool {
        match &self.kind {
            IndexKind::Stream { dataset, namespace, .. } => {
                dataset.depends_on_record() || namespace.depends_on_record()
            }
            IndexKind::Index(index) => index.depends_on_record(),
        }
    }

    /// Whether the documents go to data streams, which only `create` documents.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, IndexKind::Stream { .. })
    }

    /// Sets the name for a record.
    pub(super) fn resolve(&self, subject: &NameSubject<'_>, index: &mut RecordIndex) {
        index.name.clear();
        index.is_stream = self.is_stream();
        let is_resolved = match &self.kind {
            IndexKind::Stream { kind, prefix, dataset, dataset_suffix, namespace } => {
                let RecordIndex { name, stream, .. } = index;
                stream.kind = kind;
                stream.dataset.clear();
                stream.namespace.clear();
                let is_resolved = dataset.resolve(subject, &mut stream.dataset).is_ok()
                    && namespace.resolve(subject, &mut stream.namespace).is_ok();
                stream.dataset.push_str(dataset_suffix);
                for part in [prefix, "-", &stream.dataset, "-", &stream.namespace] {
                    name.push_str(part);
                }
                is_resolved
            }
            IndexKind::Index(resolver) => resolver.resolve(subject, &mut index.name).is_ok(),
        };
        let forbidden = index.name.len() - index.name.trim_start_matches(['-', '_', '+', '.']).len();
        index.name.drain(..forbidden);
        cut(&mut index.name, MAX_INDEX_BYTES);
        if !is_resolved || index.name.is_empty() || !self.names.admit(index.name.as_bytes()) {
            self.overflow(index);
        }
    }

    fn overflow(&self, index: &mut RecordIndex) {
        if !self.has_overflowed.swap(true, Ordering::Relaxed) {
            tracing::warn!(exporter = %self.exporter, index = %self.overflow.name,
                "too many different indices, records of further ones go to this one: see max_indices");
        }
        index.name.clone_from(&self.overflow.name);
        index.stream.dataset.clone_from(&self.overflow.stream.dataset);
        index.stream.namespace.clone_from(&self.overflow.stream.namespace);
    }
}

fn overflow_name(template: &NameTemplate) -> String {
    let mut name: String = template
        .pieces()
        .iter()
        .map(|piece| match piece {
            NamePiece::Text(text) => text.as_str(),
            NamePiece::Attribute { .. } | NamePiece::Date(_) => OVERFLOW,
        })
        .collect();
    cut(&mut name, MAX_INDEX_BYTES);
    name
}

/// Cuts a text between characters.
fn cut(text: &mut String, max: usize) {
    text.truncate(text.floor_char_boundary(max));
}
