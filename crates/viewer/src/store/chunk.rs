//! Spans of one trace that came together.

use std::sync::Arc;

use kubewake_otlp::view::{Resource, Scope, Span, View};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Who sent spans: everything around them in a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The content of the `Resource`.
    pub resource: Box<[u8]>,
    /// The content of the `InstrumentationScope`.
    pub scope: Box<[u8]>,
    /// The schema of the resource.
    pub resource_schema: Box<[u8]>,
    /// The schema of the spans.
    pub scope_schema: Box<[u8]>,
    /// Its `service.name`.
    pub service: Arc<str>,
    /// Marks of the resource's attributes, sorted.
    pub marks: Box<[u32]>,
}

impl Origin {
    /// The resource.
    pub fn resource(&self) -> Resource<'_> {
        Resource::new(&self.resource)
    }

    /// The scope.
    pub fn scope(&self) -> Scope<'_> {
        Scope::new(&self.scope)
    }
}

/// A Kubernetes object that a span is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    /// Its kind, as it is written.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its `apiVersion`, if that was said.
    pub api_version: String,
    /// Its uid, if that was said.
    pub uid: String,
}

/// No object.
const NONE: u32 = u32::MAX;

/// What is known of a span without reading it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its id.
    pub id: u64,
    /// The span that caused it; 0 for a root.
    pub parent: u64,
    /// When it began; if that was not said, when it ended. 0 if it has no time.
    pub start: u64,
    /// When it ended, never before it began.
    pub end: u64,
    pub(super) offset: u32,
    pub(super) length: u32,
    pub(super) origin: u32,
    pub(super) name: u32,
    pub(super) object: u32,
    /// The `SpanKind`.
    pub kind: u8,
    /// The code of its status.
    pub status: u8,
}

impl Entry {
    /// Whether it failed.
    pub fn is_error(&self) -> bool {
        self.status == 2
    }

    /// Whether it says when it was.
    pub fn has_time(&self) -> bool {
        self.start > 0
    }

    /// How long it took.
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }
}

/// Spans of one trace that came together.
#[derive(Debug, Default)]
pub struct Chunk {
    pub(super) bytes: Box<[u8]>,
    pub(super) entries: Box<[Entry]>,
    pub(super) origins: Box<[Arc<Origin>]>,
    pub(super) names: Box<[Arc<str>]>,
    pub(super) objects: Box<[Arc<Object>]>,
    /// Marks of attributes, of events' attributes and of traces that are linked to, sorted.
    pub(super) marks: Box<[u32]>,
}

impl Chunk {
    /// What is known of its spans.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Its spans.
    pub fn spans(&self) -> impl Iterator<Item = SpanRef<'_>> {
        self.entries.iter().map(|entry| SpanRef { chunk: self, entry })
    }

    /// Who sent them.
    pub fn origins(&self) -> &[Arc<Origin>] {
        &self.origins
    }

    /// What they are called.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// What they are about.
    pub fn objects(&self) -> &[Arc<Object>] {
        &self.objects
    }

    /// Whether a span of it may have what the mark stands for. There may be none even so.
    pub fn may_have(&self, mark: u32) -> bool {
        has(&self.marks, mark) || self.origins.iter().any(|origin| has(&origin.marks, mark))
    }
}

fn has(marks: &[u32], mark: u32) -> bool {
    marks.binary_search(&mark).is_ok()
}

/// What stands for a key with a value.
pub fn mark(key: &[u8], value: &[u8]) -> u32 {
    xxh3_64_with_seed(value, xxh3_64(key)) as u32
}

/// The key of marks that stand for a link to a trace. No attribute has it.
pub const LINK: &[u8] = b"\0link";

/// A span in its chunk.
#[derive(Clone, Copy, Debug)]
pub struct SpanRef<'a> {
    /// What it came with.
    pub chunk: &'a Chunk,
    /// What is known of it.
    pub entry: &'a Entry,
}

impl<'a> SpanRef<'a> {
    /// The span as it was sent.
    pub fn view(&self) -> Span<'a> {
        let (start, length) = (self.entry.offset as usize, self.entry.length as usize);
        Span::new(self.chunk.bytes.get(start..start + length).unwrap_or_default())
    }

    /// Who sent it.
    pub fn origin(&self) -> Option<&'a Arc<Origin>> {
        self.chunk.origins.get(self.entry.origin as usize)
    }

    /// The service that sent it.
    pub fn service(&self) -> &'a str {
        self.origin().map_or("", |origin| &origin.service)
    }

    /// Its name, cut to what is sensible for one.
    pub fn name(&self) -> &'a str {
        self.chunk.names.get(self.entry.name as usize).map_or("", |name| name)
    }

    /// What it is about, if that is an object of Kubernetes.
    pub fn object(&self) -> Option<&'a Arc<Object>> {
        self.chunk.objects.get(self.entry.object as usize)
    }
}

impl Entry {
    /// Where the tables have nothing.
    pub(super) const NO_OBJECT: u32 = NONE;
}
