//! Requests that are encoded once and filled many times.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::{
    encode::{RequestValues, TemplateSlot},
    shape::RequestShape,
};

/// Compression flag and length before every gRPC message.
const GRPC_PREFIX_BYTES: usize = 5;

/// Framing and compression of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyFormat {
    pub grpc: bool,
    pub gzip: bool,
}

/// An encoded request with its slots.
#[derive(Debug)]
pub(crate) struct RequestTemplate {
    /// The prefix, for gRPC without compression, then the message.
    bytes: Vec<u8>,
    slots: Vec<TemplateSlot>,
    /// Where the message begins in `bytes`.
    start: usize,
    format: BodyFormat,
}

/// The templates of a run, which differ by at most one error.
#[derive(Debug)]
pub(crate) struct RequestTemplates {
    fewer_errors: RequestTemplate,
    more_errors: RequestTemplate,
    /// Number of errors of the template with fewer.
    min_errors: u64,
}

impl RequestTemplates {
    pub(crate) fn new(shape: &RequestShape, format: BodyFormat) -> Self {
        let min_errors = (shape.items as f64 * shape.error_share).floor() as u64;
        let more_errors = RequestTemplate::new(shape, (min_errors + 1).min(shape.items), format);
        Self { fewer_errors: RequestTemplate::new(shape, min_errors, format), more_errors, min_errors }
    }

    /// The template of the request with this number.
    pub(crate) fn for_request(&self, shape: &RequestShape, request: u64) -> &RequestTemplate {
        if shape.errors_in_request(request) > self.min_errors { &self.more_errors } else { &self.fewer_errors }
    }

    /// The smallest size of an OTLP request.
    pub(crate) fn message_len(&self) -> usize {
        self.fewer_errors.message_len()
    }
}

impl RequestTemplate {
    /// A template with this number of errors.
    pub(crate) fn new(shape: &RequestShape, errors: u64, format: BodyFormat) -> Self {
        let (message, slots) = shape.encode(errors);
        let mut bytes = Vec::new();
        if format.grpc && !format.gzip {
            bytes.extend_from_slice(&grpc_prefix(false, message.len()));
        }
        let start = bytes.len();
        bytes.extend_from_slice(&message);
        Self { bytes, slots, start, format }
    }

    /// The size of an OTLP request.
    pub(crate) fn message_len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The body of one request.
    pub(crate) fn fill(&self, values: &RequestValues) -> std::io::Result<Bytes> {
        let mut bytes = self.bytes.clone();
        if let Some(message) = bytes.get_mut(self.start..) {
            self.slots.iter().for_each(|slot| slot.write(message, values));
        }
        if self.format.gzip { self.compress(&bytes) } else { Ok(bytes.into()) }
    }

    fn compress(&self, message: &[u8]) -> std::io::Result<Bytes> {
        let mut body = Vec::with_capacity(message.len() / 4);
        let start = if self.format.grpc { GRPC_PREFIX_BYTES } else { 0 };
        body.resize(start, 0);
        let mut encoder = GzEncoder::new(body, Compression::default());
        encoder.write_all(message)?;
        let mut body = encoder.finish()?;
        let length = body.len() - start;
        if let Some(head) = body.get_mut(..start).filter(|head| !head.is_empty()) {
            head.copy_from_slice(&grpc_prefix(true, length));
        }
        Ok(body.into())
    }
}

/// The prefix of a gRPC message.
fn grpc_prefix(compressed: bool, length: usize) -> [u8; GRPC_PREFIX_BYTES] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [u8::from(compressed), a, b, c, d]
}
