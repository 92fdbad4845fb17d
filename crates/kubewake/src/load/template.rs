//! Requests that are made once and filled many times.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::{
    encode::{Slot, Values},
    shape::Shape,
};

/// The length and the compression flag before every gRPC message.
const GRPC_PREFIX: usize = 5;

/// How a body is framed and compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Whether it is a gRPC message.
    pub grpc: bool,
    /// Whether it is compressed with gzip.
    pub gzip: bool,
}

/// The bytes of a request, and where each one differs.
#[derive(Debug)]
pub(crate) struct Template {
    /// The prefix, if it is gRPC without compression, then the message.
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// Where the message begins in `bytes`.
    start: usize,
    format: Format,
}

/// The requests of a run. They differ by one error at most.
#[derive(Debug)]
pub(crate) struct Templates {
    fewer: Template,
    more: Template,
    /// How many errors the one with fewer has.
    least: u64,
}

impl Templates {
    /// Makes the requests that all others are copies of.
    pub(crate) fn new(shape: &Shape, format: Format) -> Self {
        let least = (shape.items as f64 * shape.error_share).floor() as u64;
        let more = Template::new(shape, (least + 1).min(shape.items), format);
        Self { fewer: Template::new(shape, least, format), more, least }
    }

    /// The one that the request with this number is a copy of.
    pub(crate) fn of(&self, shape: &Shape, request: u64) -> &Template {
        if shape.errors(request) > self.least { &self.more } else { &self.fewer }
    }

    /// How many bytes of OTLP a request has, at least.
    pub(crate) fn message_len(&self) -> usize {
        self.fewer.message_len()
    }
}

impl Template {
    /// Makes the request that all others with so many errors are copies of.
    pub(crate) fn new(shape: &Shape, errors: u64, format: Format) -> Self {
        let (message, slots) = shape.encode(errors);
        let mut bytes = Vec::new();
        if format.grpc && !format.gzip {
            bytes.extend_from_slice(&prefix(false, message.len()));
        }
        let start = bytes.len();
        bytes.extend_from_slice(&message);
        Self { bytes, slots, start, format }
    }

    /// How many bytes of OTLP a request has.
    pub(crate) fn message_len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The body of one request.
    pub(crate) fn fill(&self, values: &Values) -> std::io::Result<Bytes> {
        let mut bytes = self.bytes.clone();
        if let Some(message) = bytes.get_mut(self.start..) {
            self.slots.iter().for_each(|slot| slot.write(message, values));
        }
        if self.format.gzip { self.compress(&bytes) } else { Ok(bytes.into()) }
    }

    fn compress(&self, message: &[u8]) -> std::io::Result<Bytes> {
        let mut body = Vec::with_capacity(message.len() / 4);
        let start = if self.format.grpc { GRPC_PREFIX } else { 0 };
        body.resize(start, 0);
        let mut encoder = GzEncoder::new(body, Compression::default());
        encoder.write_all(message)?;
        let mut body = encoder.finish()?;
        let length = body.len() - start;
        if let Some(head) = body.get_mut(..start).filter(|head| !head.is_empty()) {
            head.copy_from_slice(&prefix(true, length));
        }
        Ok(body.into())
    }
}

/// What stands before a gRPC message.
fn prefix(compressed: bool, length: usize) -> [u8; GRPC_PREFIX] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [u8::from(compressed), a, b, c, d]
}
