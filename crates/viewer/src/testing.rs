//! Builders of OTLP requests for tests.

use kubewake_otlp::wire::{close, open, put_bytes, put_fixed64, put_uint};

#[derive(Clone, Debug, Default)]
pub(crate) struct SpanBuilder {
    bytes: Vec<u8>,
}

impl SpanBuilder {
    pub(crate) fn new(trace: u128, id: u64, name: &str) -> Self {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, &trace.to_be_bytes());
        put_bytes(&mut bytes, 2, &id.to_be_bytes());
        put_bytes(&mut bytes, 5, name.as_bytes());
        Self { bytes }
    }

    pub(crate) fn with_parent(mut self, parent: u64) -> Self {
        put_bytes(&mut self.bytes, 4, &parent.to_be_bytes());
        self
    }

    pub(crate) fn with_times(mut self, start: u64, end: u64) -> Self {
        put_fixed64(&mut self.bytes, 7, start);
        put_fixed64(&mut self.bytes, 8, end);
        self
    }

    pub(crate) fn kind(mut self, kind: u64) -> Self {
        put_uint(&mut self.bytes, 6, kind);
        self
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.attribute(key, |out| put_bytes(out, 1, value.as_bytes()))
    }

    pub(crate) fn int(self, key: &str, value: i64) -> Self {
        self.attribute(key, |out| put_uint(out, 3, value as u64))
    }

    pub(crate) fn link(mut self, trace: u128, span: u64) -> Self {
        let start = open(&mut self.bytes, 13);
        put_bytes(&mut self.bytes, 1, &trace.to_be_bytes());
        put_bytes(&mut self.bytes, 2, &span.to_be_bytes());
        close(&mut self.bytes, start);
        self
    }

    pub(crate) fn error(mut self, message: &str) -> Self {
        let start = open(&mut self.bytes, 15);
        put_bytes(&mut self.bytes, 2, message.as_bytes());
        put_uint(&mut self.bytes, 3, 2);
        close(&mut self.bytes, start);
        self
    }

    /// An attribute whose value is not a message.
    pub(crate) fn broken_attribute(mut self) -> Self {
        put_bytes(&mut self.bytes, 9, b"\xff\xff\xff");
        self
    }

    /// An attribute with nested lists around a text.
    pub(crate) fn nested(self, key: &str, depth: usize) -> Self {
        let value = lists(depth);
        self.attribute(key, |out| out.extend_from_slice(&value))
    }

    /// An event with such an attribute.
    pub(crate) fn event_with_nested(mut self, key: &str, depth: usize) -> Self {
        let value = lists(depth);
        let event = open(&mut self.bytes, 11);
        put_bytes(&mut self.bytes, 2, b"event");
        put_pair(&mut self.bytes, 3, key.as_bytes(), |out| out.extend_from_slice(&value));
        close(&mut self.bytes, event);
        self
    }

    fn attribute(self, key: &str, value: impl FnOnce(&mut Vec<u8>)) -> Self {
        self.pair(key.as_bytes(), value)
    }

    fn pair(mut self, key: &[u8], value: impl FnOnce(&mut Vec<u8>)) -> Self {
        put_pair(&mut self.bytes, 9, key, value);
        self
    }
}

fn lists(depth: usize) -> Vec<u8> {
    let mut value = Vec::new();
    put_bytes(&mut value, 1, b"leaf");
    for _ in 0..depth {
        let mut list = Vec::new();
        let mut outer = Vec::new();
        put_bytes(&mut list, 1, &value);
        put_bytes(&mut outer, 5, &list);
        value = outer;
    }
    value
}

fn put_pair(out: &mut Vec<u8>, number: u32, key: &[u8], value: impl FnOnce(&mut Vec<u8>)) {
    let pair = open(out, number);
    put_bytes(out, 1, key);
    let inner = open(out, 2);
    value(out);
    close(out, inner);
    close(out, pair);
}

/// A request with one resource.
pub(crate) fn request(service: &str, spans: Vec<SpanBuilder>) -> Vec<u8> {
    let mut out = Vec::new();
    let entry = open(&mut out, 1);
    let resource = open(&mut out, 1);
    put_pair(&mut out, 1, b"service.name", |out| put_bytes(out, 1, service.as_bytes()));
    close(&mut out, resource);
    let scope = open(&mut out, 2);
    spans.iter().for_each(|span| put_bytes(&mut out, 2, &span.bytes));
    close(&mut out, scope);
    close(&mut out, entry);
    out
}
