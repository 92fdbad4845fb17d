//! A request, taken apart by traces. No lock is held meanwhile.

use std::{collections::HashMap, sync::Arc};

use kubewake_otlp::view::{AnyValue, Attributes, ResourceEntry, ScopeEntry, Span, View, lossy, resources};

use super::{
    Entry, Object, Origin, TraceId,
    chunk::{LINK, mark},
};

/// What a span without a name of its service is of.
const UNKNOWN_SERVICE: &str = "unknown_service";
/// Names are kept up to here: what is longer is no name, and the span itself has all of it.
pub(crate) const NAME: usize = 256;

/// The spans of a request, by trace.
#[derive(Debug, Default)]
pub struct Arrival {
    pub(super) drafts: Vec<(TraceId, Draft)>,
    /// Spans without an id or without a trace.
    pub(super) invalid: u64,
}

/// A chunk that is being made.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) bytes: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    pub(super) origins: Vec<Arc<Origin>>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) marks: Vec<u32>,
    by_name: HashMap<Vec<u8>, u32>,
    by_object: HashMap<Object, u32>,
}

impl Arrival {
    /// Reads an export request.
    pub fn read(request: &[u8]) -> Self {
        let mut arrival = Self::default();
        let mut by_trace = HashMap::new();
        for resource in resources(request) {
            let marks = resource_marks(&resource);
            for scope in resource.scopes() {
                let origin = Arc::new(origin(&resource, &scope, &marks));
                for span in scope.spans() {
                    arrival.span(&mut by_trace, span, &origin);
                }
            }
        }
        arrival.drafts.iter_mut().for_each(|(_, draft)| draft.finish());
        arrival
    }

    /// How many spans there are.
    pub fn spans(&self) -> usize {
        self.drafts.iter().map(|(_, draft)| draft.entries.len()).sum()
    }

    fn span(&mut self, by_trace: &mut HashMap<TraceId, usize>, span: Span<'_>, origin: &Arc<Origin>) {
        let (trace, id) = (<[u8; 16]>::try_from(span.trace_id()), number(span.span_id()));
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
            self.drafts.push((trace, Draft::default()));
            self.drafts.len() - 1
        });
        if let Some((_, draft)) = self.drafts.get_mut(at) {
            draft.push(id, span, origin);
        }
    }
}

impl Draft {
    fn push(&mut self, id: u64, span: Span<'_>, origin: &Arc<Origin>) {
        let (Ok(offset), Ok(length)) = (u32::try_from(self.bytes.len()), u32::try_from(span.as_bytes().len())) else {
            return;
        };
        if self.origins.last().is_none_or(|last| !Arc::ptr_eq(last, origin)) {
            self.origins.push(origin.clone());
        }
        let origin = index(self.origins.len() - 1);
        let (name, object) = (self.name(span.name()), self.object(span.attributes()));
        mark_span(&mut self.marks, span);
        self.bytes.extend_from_slice(span.as_bytes());
        let start = if span.start() > 0 { span.start() } else { span.end() };
        self.entries.push(Entry {
            id,
            parent: number(span.parent_span_id()),
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

    fn name(&mut self, name: &[u8]) -> u32 {
        let name = name.get(..NAME).unwrap_or(name);
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        let at = index(self.names.len());
        self.names.push(cut(&lossy(name), NAME).into());
        self.by_name.insert(name.to_vec(), at);
        at
    }

    fn object(&mut self, attributes: Attributes<'_>) -> u32 {
        let Some(object) = object(attributes) else { return Entry::NO_OBJECT };
        if let Some(at) = self.by_object.get(&object) {
            return *at;
        }
        let at = index(self.objects.len());
        self.objects.push(Arc::new(object.clone()));
        self.by_object.insert(object, at);
        at
    }

    /// The marks of a span, each once.
    pub(super) fn marks_of(&self, entry: &Entry) -> Vec<u32> {
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

    /// Keeps some of the spans, and in the tables what these need.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry, &[u8]) -> bool) {
        let whole = std::mem::take(self);
        for entry in &whole.entries {
            let span = whole.span(entry);
            if keep(entry, span)
                && let Some(origin) = whole.origins.get(entry.origin as usize)
            {
                self.push(entry.id, Span::new(span), origin);
            }
        }
        self.finish();
    }

    /// The span that an entry is of.
    pub(super) fn span(&self, entry: &Entry) -> &[u8] {
        let (start, length) = (entry.offset as usize, entry.length as usize);
        self.bytes.get(start..start + length).unwrap_or_default()
    }
}

fn origin(resource: &ResourceEntry<'_>, scope: &ScopeEntry<'_>, marks: &[u32]) -> Origin {
    let service = resource.resource().attributes().text("service.name").filter(|name| !name.is_empty());
    let service = service.map_or(UNKNOWN_SERVICE.into(), |name| cut(&lossy(name), NAME).into());
    Origin {
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
    mark_all(&mut marks, resource.resource().attributes());
    marks.sort_unstable();
    marks.dedup();
    marks
}

fn mark_span(marks: &mut Vec<u32>, span: Span<'_>) {
    mark_all(marks, span.attributes());
    span.events().for_each(|event| mark_all(marks, event.attributes()));
    marks.extend(span.links().map(|link| mark(LINK, link.trace_id())));
}

fn mark_all(marks: &mut Vec<u32>, attributes: Attributes<'_>) {
    marks.extend(attributes.iter().map(|attribute| mark(attribute.key(), &attribute.value().to_text())));
}

/// What a span is about. Our own names say it for any kind; the semantic conventions have names for some.
fn object(attributes: Attributes<'_>) -> Option<Object> {
    let mut object = Object::default();
    let mut other = None;
    for attribute in attributes {
        // What was only tried is no object.
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
                other = other.or_else(|| Some((conventional(key)?, text)));
                continue;
            }
        };
        *field = cut(&lossy(text), NAME).to_owned();
    }
    if object.kind.is_empty() || object.name.is_empty() {
        let ((kind, api_version), name) = other?;
        let (kind, api_version, name) = (kind.into(), api_version.into(), cut(&lossy(name), NAME).to_owned());
        let namespace = std::mem::take(&mut object.namespace);
        object = Object { kind, api_version, namespace, name, ..Object::default() };
    }
    Some(object)
}

/// The kinds whose names the semantic conventions have attributes for, with their `apiVersion`. Pods come first: a span about a pod may name what it belongs to.
fn conventional(key: &[u8]) -> Option<(&'static str, &'static str)> {
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

/// The number of an id; 0 if it is none.
fn number(id: &[u8]) -> u64 {
    id.try_into().map_or(0, u64::from_be_bytes)
}

fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The first bytes of a text, between two characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
