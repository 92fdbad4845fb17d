//! Spans as lines of text: `name < parent ~ link`, sorted.

use std::collections::HashMap;

use opentelemetry::trace::{SpanContext, SpanId};
use opentelemetry_sdk::trace::SpanData;

/// Names of spans and of contexts from other writers.
#[derive(Default)]
pub struct Edges {
    foreign: HashMap<SpanId, String>,
}

impl Edges {
    /// Names a context of another writer.
    pub fn knows(mut self, name: &str, context: &SpanContext) -> Self {
        self.foreign.insert(context.span_id(), name.to_owned());
        self
    }

    pub fn of(&self, spans: &[SpanData]) -> Vec<String> {
        let mut names = self.foreign.clone();
        names.extend(spans.iter().map(|span| (span.span_context.span_id(), span.name.to_string())));
        let name = |id: SpanId| match names.get(&id) {
            Some(name) => name.clone(),
            None if id == SpanId::INVALID => "nothing".to_owned(),
            None => format!("ORPHAN OF {id}"),
        };
        let line = |span: &SpanData| {
            let links: String = span.links.iter().map(|it| format!(" ~ {}", name(it.span_context.span_id()))).collect();
            format!("{} < {}{links}", span.name, name(span.parent_span_id))
        };
        let mut lines: Vec<_> = spans.iter().map(line).collect();
        lines.sort();
        lines
    }
}
