//! Spans as a test looks at them, read from lines of OTLP JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Text by name.
pub type Attributes = BTreeMap<String, String>;

/// Which span of which trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanRef {
    /// The trace's id in hex.
    pub trace: String,
    /// The span's id in hex.
    pub span: String,
}

/// A finished span.
#[derive(Clone, Debug)]
pub struct Span {
    /// Which one it is.
    pub id: SpanRef,
    /// The span's id of its parent, if it is no root.
    pub parent: Option<String>,
    /// What it links to.
    pub links: Vec<SpanRef>,
    /// Its name.
    pub name: String,
    /// `internal`, `server`, `client`, `producer`, `consumer`.
    pub kind: &'static str,
    /// `service.name` of who made it.
    pub service: String,
    /// What went wrong, if its status is an error.
    pub error: Option<String>,
    /// Its attributes; a value that is no text is its JSON.
    pub attributes: Attributes,
    /// The names of its events.
    pub events: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

impl Span {
    /// One of its attributes, or nothing.
    pub fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    /// Where its parent is.
    pub fn parent(&self) -> Option<SpanRef> {
        let span = self.parent.clone()?;
        Some(SpanRef { trace: self.id.trace.clone(), span })
    }

    /// As a header or an annotation has it.
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

/// All spans that were received, each once: whoever exports may send a batch again.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    all: Vec<Span>,
    places: BTreeMap<SpanRef, usize>,
}

impl Spans {
    /// Those of a request in OTLP's JSON.
    pub fn of_request(request: &Value) -> Self {
        let mut spans = Self::default();
        spans.add(request);
        spans
    }

    /// Adds those of a request.
    pub(super) fn add(&mut self, request: &Value) {
        for resource in list(&request["resourceSpans"]) {
            let service = attributes(&resource["resource"]).remove("service.name").unwrap_or_default();
            let scopes = list(&resource["scopeSpans"]).iter();
            for span in scopes.flat_map(|scope| list(&scope["spans"])) {
                let span = Span::read(span, &service);
                if !self.places.contains_key(&span.id) {
                    self.places.insert(span.id.clone(), self.all.len());
                    self.all.push(span);
                }
            }
        }
    }

    /// All of them, as they came.
    pub fn iter(&self) -> impl Iterator<Item = &Span> {
        self.all.iter()
    }

    /// Those of this name, as they came.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Span> {
        self.iter().filter(move |span| span.name == name)
    }

    /// Those of a service.
    pub fn of<'a>(&'a self, service: &'a str) -> impl Iterator<Item = &'a Span> {
        self.iter().filter(move |span| span.service == service)
    }

    /// Those of a trace.
    pub fn in_trace<'a>(&'a self, trace: &'a str) -> impl Iterator<Item = &'a Span> {
        self.iter().filter(move |span| span.id.trace == trace)
    }

    /// The traces in which these services have spans. What was only tried in a dry run does not count.
    pub fn traces_of(&self, services: &[&str]) -> BTreeSet<String> {
        let real = self.iter().filter(|span| span.attribute("trail.dry_run").is_empty());
        let theirs = real.filter(|span| services.contains(&span.service.as_str()));
        theirs.map(|span| span.id.trace.clone()).collect()
    }

    /// A span that something refers to.
    pub fn get(&self, id: &SpanRef) -> Option<&Span> {
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

fn reference(value: &Value) -> SpanRef {
    SpanRef { trace: text(&value["traceId"]), span: text(&value["spanId"]) }
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

fn attributes(of: &Value) -> Attributes {
    let pairs = list(&of["attributes"]).iter();
    pairs.map(|pair| (text(&pair["key"]), any_value(&pair["value"]))).collect()
}

/// Text and numbers as they are, the rest as JSON.
fn any_value(value: &Value) -> String {
    let plain = ["stringValue", "intValue"].iter().find_map(|key| value[key].as_str());
    let other = || value.as_object().and_then(|fields| fields.values().next()).map(Value::to_string);
    plain.map(str::to_owned).or_else(other).unwrap_or_default()
}
