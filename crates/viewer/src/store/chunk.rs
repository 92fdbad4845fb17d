//! Chunks: spans of one trace that arrived together.

use std::sync::Arc;

use kubewake_otlp::view::{MessageView, Resource, Scope, Span};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The sender of spans: resource and scope of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TelemetryOrigin {
    /// Encoded `Resource`.
    pub resource: Box<[u8]>,
    /// Encoded `InstrumentationScope`.
    pub scope: Box<[u8]>,
    /// Schema URL of the resource.
    pub resource_schema: Box<[u8]>,
    /// Schema URL of the spans.
    pub scope_schema: Box<[u8]>,
    pub service: Arc<str>,
    /// Marks of the resource's attributes, sorted.
    pub marks: Box<[u32]>,
}

impl TelemetryOrigin {
    pub fn resource(&self) -> Resource<'_> {
        Resource::new(&self.resource)
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope::new(&self.scope)
    }
}

/// A Kubernetes object that a span is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanSubject {
    /// The kind as the span writes it.
    pub kind: String,
    /// Empty: cluster-scoped.
    pub namespace: String,
    pub name: String,
    /// Empty if the span does not name it.
    pub api_version: String,
    /// Empty if the span does not name it.
    pub uid: String,
}

const NO_ENTRY: u32 = u32::MAX;

/// The properties of a span that are known without decoding it.
#[derive(Clone, Copy, Debug)]
pub struct ChunkEntry {
    pub id: u64,
    /// Id of the parent; 0 for a root.
    pub parent: u64,
    /// Start; if it is missing, the end. 0 if the span has no times.
    pub start: u64,
    /// End, never before the start.
    pub end: u64,
    pub(super) offset: u32,
    pub(super) length: u32,
    pub(super) origin: u32,
    pub(super) name: u32,
    pub(super) object: u32,
    pub kind: u8,
    pub status: u8,
}

impl ChunkEntry {
    pub fn is_error(&self) -> bool {
        self.status == 2
    }

    /// Whether the span has a start or an end.
    pub fn has_time(&self) -> bool {
        self.start > 0
    }

    pub fn duration(&self) -> u64 {
        self.end - self.start
    }
}

/// Spans of one trace that arrived together.
#[derive(Debug, Default)]
pub struct TraceChunk {
    pub(super) bytes: Box<[u8]>,
    pub(super) entries: Box<[ChunkEntry]>,
    pub(super) origins: Box<[Arc<TelemetryOrigin>]>,
    pub(super) names: Box<[Arc<str>]>,
    pub(super) objects: Box<[Arc<SpanSubject>]>,
    /// Marks of attributes, of events' attributes and of linked traces, sorted.
    pub(super) marks: Box<[u32]>,
}

impl TraceChunk {
    pub fn entries(&self) -> &[ChunkEntry] {
        &self.entries
    }

    pub fn spans(&self) -> impl Iterator<Item = SpanRef<'_>> {
        self.entries.iter().map(|entry| SpanRef { chunk: self, entry })
    }

    pub fn origins(&self) -> &[Arc<TelemetryOrigin>] {
        &self.origins
    }

    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    pub fn objects(&self) -> &[Arc<SpanSubject>] {
        &self.objects
    }

    /// Whether a span may have what the mark stands for. False positives are possible.
    pub fn may_have(&self, mark: u32) -> bool {
        contains_mark(&self.marks, mark) || self.origins.iter().any(|origin| contains_mark(&origin.marks, mark))
    }
}

fn contains_mark(marks: &[u32], mark: u32) -> bool {
    marks.binary_search(&mark).is_ok()
}

/// The mark of a key with a value.
pub fn attribute_mark(key: &[u8], value: &[u8]) -> u32 {
    xxh3_64_with_seed(value, xxh3_64(key)) as u32
}

/// The key in marks of linked traces. No attribute has this key.
pub const LINK_MARK_KEY: &[u8] = b"\0link";

#[derive(Clone, Copy, Debug)]
pub struct SpanRef<'a> {
    pub chunk: &'a TraceChunk,
    pub entry: &'a ChunkEntry,
}

impl<'a> SpanRef<'a> {
    pub fn view(&self) -> Span<'a> {
        let start = self.entry.offset as usize;
        let length = self.entry.length as usize;
        Span::new(self.chunk.bytes.get(start..start + length).unwrap_or_default())
    }

    pub fn origin(&self) -> Option<&'a Arc<TelemetryOrigin>> {
        self.chunk.origins.get(self.entry.origin as usize)
    }

    pub fn service(&self) -> &'a str {
        self.origin().map_or("", |origin| &origin.service)
    }

    /// Its name, truncated to `MAX_NAME_BYTES`.
    pub fn name(&self) -> &'a str {
        self.chunk.names.get(self.entry.name as usize).map_or("", |name| name)
    }

    /// The Kubernetes object that the span is about, if any.
    pub fn object(&self) -> Option<&'a Arc<SpanSubject>> {
        self.chunk.objects.get(self.entry.object as usize)
    }
}

impl ChunkEntry {
    /// Index of a span without an object.
    pub(super) const NO_OBJECT: u32 = NO_ENTRY;
}
