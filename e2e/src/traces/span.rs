//! Spans in a form that tests compare, decoded from lines of OTLP JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub type SpanAttributes = BTreeMap<String, String>;

/// The ids of a span and its trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanReference {
    /// In hexadecimal.
    pub trace: String,
    /// In hexadecimal.
    pub span: String,
}

#[derive(Clone, Debug)]
pub struct ExportedSpan {
    pub id: SpanReference,
    /// Span id of the parent; none for a root.
    pub parent: Option<String>,
    pub links: Vec<SpanReference>,
    pub name: String,
    /// `internal`, `server`, `client`, `producer`, `consumer`.
    pub kind: &'static str,
    /// `service.name` of its resource.
    pub service: String,
    /// The status message, if the status is an error.
    pub error: Option<String>,
    /// Its attributes; values that are not text are JSON.
    pub attributes: SpanAttributes,
    pub events: Vec<String>,
    /// In nanoseconds since 1970.
    pub start: u64,
    pub end: u64,
}

impl ExportedSpan {
    /// The value of an attribute, or an empty string.
    pub fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    pub fn parent_reference(&self) -> Option<SpanReference> {
        let span = self.parent.clone()?;
        Some(SpanReference { trace: self.id.trace.clone(), span })
    }

    /// In the format of the `traceparent` header.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.id.trace, self.id.span)
    }

    fn read(span: &Value, service: &str) -> Self {
        let error = (span["status"]["code"] == 2).then(|| text(&span["status"]["message"]));
        Self {
            id: reference(span),
            parent: Some(text(&span["parentSpanId"])).filter(|id| !id.is_empty()),
            links: list(&span["links"]).iter().map(reference).collect(),
            name: text(&span["name"]),
            kind: kind(&span["kind"]),
            service: service.to_owned(),
            error,
            attributes: attributes(span),
            events: list(&span["events"]).iter().map(|event| text(&event["name"])).collect(),
            start: nanoseconds(&span["startTimeUnixNano"]),
            end: nanoseconds(&span["endTimeUnixNano"]),
        }
    }
}

/// All received spans, each once: an exporter may send a batch again.
#[derive(Clone, Debug, Default)]
pub struct SpanSet {
    all: Vec<ExportedSpan>,
    places: BTreeMap<SpanReference, usize>,
}

impl SpanSet {
    /// The spans of a request in OTLP's JSON.
    pub fn of_request(request: &Value) -> Self {
        let mut spans = Self::default();
        spans.add(request);
        spans
    }

    /// Adds the spans of a request.
    pub(super) fn add(&mut self, request: &Value) {
        for resource in list(&request["resourceSpans"]) {
            let service = attributes(&resource["resource"]).remove("service.name").unwrap_or_default();
            let scopes = list(&resource["scopeSpans"]).iter();
            for span in scopes.flat_map(|scope| list(&scope["spans"])) {
                let span = ExportedSpan::read(span, &service);
                if !self.places.contains_key(&span.id) {
                    self.places.insert(span.id.clone(), self.all.len());
                    self.all.push(span);
                }
            }
        }
    }

    /// All spans, in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &ExportedSpan> {
        self.all.iter()
    }

    /// The spans of this name, in order of arrival.
    pub fn with_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ExportedSpan> {
        self.iter().filter(move |span| span.name == name)
    }

    pub fn from_service<'a>(&'a self, service: &'a str) -> impl Iterator<Item = &'a ExportedSpan> {
        self.iter().filter(move |span| span.service == service)
    }

    pub fn in_trace<'a>(&'a self, trace: &'a str) -> impl Iterator<Item = &'a ExportedSpan> {
        self.iter().filter(move |span| span.id.trace == trace)
    }

    /// The traces in which these services have spans. Dry runs do not count.
    pub fn traces_of_services(&self, services: &[&str]) -> BTreeSet<String> {
        let real = self.iter().filter(|span| span.attribute("trail.dry_run").is_empty());
        let theirs = real.filter(|span| services.contains(&span.service.as_str()));
        theirs.map(|span| span.id.trace.clone()).collect()
    }

    /// The span with these ids.
    pub fn get(&self, id: &SpanReference) -> Option<&ExportedSpan> {
        self.places.get(id).and_then(|place| self.all.get(*place))
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn nanoseconds(value: &Value) -> u64 {
    value.as_str().and_then(|number| number.parse().ok()).or_else(|| value.as_u64()).unwrap_or_default()
}

fn reference(value: &Value) -> SpanReference {
    SpanReference { trace: text(&value["traceId"]), span: text(&value["spanId"]) }
}

fn kind(value: &Value) -> &'static str {
    match value.as_u64() {
        Some(2) => "server",
        Some(3) => "client",
        Some(4) => "producer",
        Some(5) => "consumer",
        _ => "internal",
    }
}

fn attributes(of: &Value) -> SpanAttributes {
    let pairs = list(&of["attributes"]).iter();
    pairs.map(|pair| (text(&pair["key"]), any_value(&pair["value"]))).collect()
}

/// Text and numbers as they are, other values as JSON.
fn any_value(value: &Value) -> String {
    let plain = ["stringValue", "intValue"].iter().find_map(|key| value[key].as_str());
    let other = || value.as_object().and_then(|fields| fields.values().next()).map(Value::to_string);
    plain.map(str::to_owned).or_else(other).unwrap_or_default()
}
