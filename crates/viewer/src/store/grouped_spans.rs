//! Groups the spans of a request by trace, without holding a lock.

use std::{collections::HashMap, sync::Arc};

use kubewake_otlp::view::{AnyValue, AttributesView, MessageView, ResourceEntry, ScopeEntry, Span, lossy, resources};

use super::{
    ChunkEntry, SpanSubject, TelemetryOrigin, TraceId,
    chunk::{LINK_MARK_KEY, attribute_mark},
};

/// Service of spans without `service.name`.
const UNKNOWN_SERVICE: &str = "unknown_service";
/// Longer names are truncated; the span itself keeps its whole name.
pub(crate) const MAX_NAME_BYTES: usize = 256;

#[derive(Debug, Default)]
pub struct GroupedSpans {
    pub(super) drafts: Vec<(TraceId, ChunkDraft)>,
    /// Spans without a span id or a trace id.
    pub(super) invalid: u64,
}

#[derive(Debug, Default)]
pub(super) struct ChunkDraft {
    pub(super) bytes: Vec<u8>,
    pub(super) entries: Vec<ChunkEntry>,
    pub(super) origins: Vec<Arc<TelemetryOrigin>>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) objects: Vec<Arc<SpanSubject>>,
    pub(super) marks: Vec<u32>,
    by_name: HashMap<Vec<u8>, u32>,
    by_object: HashMap<SpanSubject, u32>,
}

impl GroupedSpans {
    pub fn parse(request: &[u8]) -> Self {
        let mut arrival = Self::default();
        let mut by_trace = HashMap::new();
        for resource in resources(request) {
            let marks = resource_marks(&resource);
            for scope in resource.scopes() {
                let origin = Arc::new(build_origin(&resource, &scope, &marks));
                for span in scope.spans() {
                    arrival.span(&mut by_trace, span, &origin);
                }
            }
        }
        arrival.drafts.iter_mut().for_each(|(_, draft)| draft.finish());
        arrival
    }

    pub fn spans(&self) -> usize {
        self.drafts.iter().map(|(_, draft)| draft.entries.len()).sum()
    }

    fn span(&mut self, by_trace: &mut HashMap<TraceId, usize>, span: Span<'_>, origin: &Arc<TelemetryOrigin>) {
        let trace = <[u8; 16]>::try_from(span.trace_id());
        let id = span_id_number(span.span_id());
        let (Ok(trace), true) = (trace, id != 0) else {
            self.invalid += 1;
            return;
        };
        if trace == [0; 16] {
            self.invalid += 1;
            return;
        }
        let trace = TraceId(trace);
        let at = *by_trace.entry(trace).or_insert_with(|| {
            self.drafts.push((trace, ChunkDraft::default()));
            self.drafts.len() - 1
        });
        if let Some((_, draft)) = self.drafts.get_mut(at) {
            draft.push_span(id, span, origin);
        }
    }
}

impl ChunkDraft {
    fn push_span(&mut self, id: u64, span: Span<'_>, origin: &Arc<TelemetryOrigin>) {
        let (Ok(offset), Ok(length)) = (u32::try_from(self.bytes.len()), u32::try_from(span.as_bytes().len())) else {
            return;
        };
        if self.origins.last().is_none_or(|last| !Arc::ptr_eq(last, origin)) {
            self.origins.push(origin.clone());
        }
        let origin = table_index(self.origins.len() - 1);
        let name = self.intern_name(span.name());
        let object = self.object(span.attributes());
        mark_span(&mut self.marks, span);
        self.bytes.extend_from_slice(span.as_bytes());
        let start = if span.start() > 0 { span.start() } else { span.end() };
        self.entries.push(ChunkEntry {
            id,
            parent: span_id_number(span.parent_span_id()),
            start,
            end: span.end().max(start),
            offset,
            length,
            origin,
            name,
            object,
            kind: u8::try_from(span.kind()).unwrap_or_default(),
            status: u8::try_from(span.status().code()).unwrap_or_default(),
        });
    }

    fn intern_name(&mut self, name: &[u8]) -> u32 {
        let name = name.get(..MAX_NAME_BYTES).unwrap_or(name);
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        let at = table_index(self.names.len());
        self.names.push(truncate(&lossy(name), MAX_NAME_BYTES).into());
        self.by_name.insert(name.to_vec(), at);
        at
    }

    fn object(&mut self, attributes: AttributesView<'_>) -> u32 {
        let Some(object) = object(attributes) else { return ChunkEntry::NO_OBJECT };
        if let Some(at) = self.by_object.get(&object) {
            return *at;
        }
        let at = table_index(self.objects.len());
        self.objects.push(Arc::new(object.clone()));
        self.by_object.insert(object, at);
        at
    }

    /// The distinct marks of a span.
    pub(super) fn span_marks(&self, entry: &ChunkEntry) -> Vec<u32> {
        let mut marks = Vec::new();
        mark_span(&mut marks, Span::new(self.span(entry)));
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    fn finish(&mut self) {
        self.marks.sort_unstable();
        self.marks.dedup();
        (self.by_name, self.by_object) = Default::default();
    }

    /// Keeps some of the spans, and the table values that they refer to.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&ChunkEntry, &[u8]) -> bool) {
        let whole = std::mem::take(self);
        for entry in &whole.entries {
            let span = whole.span(entry);
            if keep(entry, span)
                && let Some(origin) = whole.origins.get(entry.origin as usize)
            {
                self.push_span(entry.id, Span::new(span), origin);
            }
        }
        self.finish();
    }

    /// The encoded span of an entry.
    pub(super) fn span(&self, entry: &ChunkEntry) -> &[u8] {
        let start = entry.offset as usize;
        let length = entry.length as usize;
        self.bytes.get(start..start + length).unwrap_or_default()
    }
}

fn build_origin(resource: &ResourceEntry<'_>, scope: &ScopeEntry<'_>, marks: &[u32]) -> TelemetryOrigin {
    let service = resource.resource().attributes().text("service.name").filter(|name| !name.is_empty());
    let service = service.map_or(UNKNOWN_SERVICE.into(), |name| truncate(&lossy(name), MAX_NAME_BYTES).into());
    TelemetryOrigin {
        resource: resource.resource().as_bytes().into(),
        scope: scope.scope().as_bytes().into(),
        resource_schema: resource.schema_url().into(),
        scope_schema: scope.schema_url().into(),
        service,
        marks: marks.into(),
    }
}

fn resource_marks(resource: &ResourceEntry<'_>) -> Vec<u32> {
    let mut marks = Vec::new();
    mark_attributes(&mut marks, resource.resource().attributes());
    marks.sort_unstable();
    marks.dedup();
    marks
}

fn mark_span(marks: &mut Vec<u32>, span: Span<'_>) {
    mark_attributes(marks, span.attributes());
    span.events().for_each(|event| mark_attributes(marks, event.attributes()));
    marks.extend(span.links().map(|link| attribute_mark(LINK_MARK_KEY, link.trace_id())));
}

fn mark_attributes(marks: &mut Vec<u32>, attributes: AttributesView<'_>) {
    marks.extend(attributes.iter().map(|attribute| attribute_mark(attribute.key(), &attribute.value().to_text())));
}

/// The object of a span. The project's own attributes name objects of any kind, the semantic conventions those
/// of some.
fn object(attributes: AttributesView<'_>) -> Option<SpanSubject> {
    let mut object = SpanSubject::default();
    let mut other = None;
    for attribute in attributes {
        // A dry run creates no object.
        if attribute.key() == b"trail.dry_run" && matches!(attribute.value(), AnyValue::Bool(true)) {
            return None;
        }
        let Some(text) = attribute.value().as_text() else { continue };
        let field = match attribute.key() {
            b"k8s.object.kind" => &mut object.kind,
            b"k8s.object.name" => &mut object.name,
            b"k8s.namespace.name" => &mut object.namespace,
            b"k8s.object.api_version" => &mut object.api_version,
            b"k8s.object.uid" => &mut object.uid,
            key => {
                other = other.or_else(|| Some((conventional_kind(key)?, text)));
                continue;
            }
        };
        *field = truncate(&lossy(text), MAX_NAME_BYTES).to_owned();
    }
    if object.kind.is_empty() || object.name.is_empty() {
        let ((kind, api_version), name) = other?;
        let (kind, api_version, name) =
            (kind.into(), api_version.into(), truncate(&lossy(name), MAX_NAME_BYTES).to_owned());
        let namespace = std::mem::take(&mut object.namespace);
        object = SpanSubject { kind, api_version, namespace, name, ..SpanSubject::default() };
    }
    Some(object)
}

/// The kinds that semantic conventions have attributes for, with their `apiVersion`. Pods come first: a span of
/// a pod may name the pod's owners, too.
fn conventional_kind(key: &[u8]) -> Option<(&'static str, &'static str)> {
    match key {
        b"k8s.pod.name" => Some(("Pod", "v1")),
        b"k8s.deployment.name" => Some(("Deployment", "apps/v1")),
        b"k8s.statefulset.name" => Some(("StatefulSet", "apps/v1")),
        b"k8s.daemonset.name" => Some(("DaemonSet", "apps/v1")),
        b"k8s.job.name" => Some(("Job", "batch/v1")),
        b"k8s.cronjob.name" => Some(("CronJob", "batch/v1")),
        b"k8s.configmap.name" => Some(("ConfigMap", "v1")),
        _ => None,
    }
}

/// The number of a span id; 0 if it is not valid.
fn span_id_number(id: &[u8]) -> u64 {
    id.try_into().map_or(0, u64::from_be_bytes)
}

fn table_index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The first bytes of a text, up to a character boundary.
pub(crate) fn truncate(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
