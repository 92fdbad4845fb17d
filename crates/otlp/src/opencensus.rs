//! OpenCensus as OTLP: export requests of `opencensus.proto.agent.trace.v1` become `ExportTraceServiceRequest`s.
//!
//! [`Sender`] is one stream of such requests: each says who sends only if that is not who sent the one before. The mapping
//! is that of the Collector. Ids are filled up or cut to their length; the kind may be in the attribute `span.kind`, the
//! status in `otel.status_code`; annotations and message events become events; node and resource become the attributes of
//! a resource. A span with a resource of its own goes into an entry of its own. Stack traces, the number of children, the
//! type of a link and how much of a text was cut have no counterpart and go.
//!
//! *Guarantees.* What comes out is accepted by [`scan`](crate::scan), whatever the bytes were. A request can become much longer (every
//! message event has four attributes, every resource of a span repeats the node): memory is asked for before it is taken. What a
//! stream says of its sender is kept, and is at most [`MAX_SENDER`] bytes. *Not done*: text is not checked for UTF-8; a
//! message that comes in parts is not put together, the last part counts; a key that is in a map twice is in the
//! attributes twice, but for those of a resource.

mod attributes;
mod fields;
mod out;
mod resource;
mod span;
mod time;

#[cfg(test)]
mod tests;

use crate::json;
use crate::numbers::{request, resource_entry, scope_entry};
use crate::wire::{Fields, WireError};
use fields::{oc_request, oc_span};
use out::Out;

/// What a node and a resource may take together. A few attributes are a few hundred bytes; a stream holds on to them for
/// as long as it lives.
pub const MAX_SENDER: usize = 16 << 10;

/// What a stream has said of its sender.
#[derive(Debug, Default)]
pub struct Sender {
    node: Option<Vec<u8>>,
    resource: Option<Vec<u8>>,
    /// Both as attributes.
    attributes: Vec<u8>,
}

/// Why a request cannot be translated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranslateError<E> {
    /// It is not an export request.
    #[error("not an OpenCensus export request: {0}")]
    Malformed(#[from] WireError),
    /// The first request of a stream does not say who sends it.
    #[error("protocol violation: Export's first message must have a Node")]
    NoNode,
    /// A node or a resource that is too large to be kept.
    #[error("node and resource are larger than {MAX_SENDER} bytes together")]
    SenderTooLarge,
    /// There is no memory for what it becomes.
    #[error("no memory for the translation")]
    Memory(E),
}

impl Sender {
    /// The OTLP request that a request of this stream is. `reserve` is asked for memory before it is allocated, and may
    /// refuse it.
    pub fn translate<E>(
        &mut self,
        message: &[u8],
        mut reserve: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Vec<u8>, TranslateError<E>> {
        self.hear(message)?;
        let mut refusal = None;
        let mut ask = |more| reserve(more).map_err(|no| refusal = Some(no)).is_ok();
        let mut out = Out::new(&mut ask);
        self.write(message, &mut out);
        let bytes = out.finish();
        refusal.map_or(Ok(bytes), |no| Err(TranslateError::Memory(no)))
    }

    /// Checks the request, and notes who sends it.
    fn hear<E>(&mut self, message: &[u8]) -> Result<(), TranslateError<E>> {
        let (mut node, mut resource, mut largest) = (None, None, 0);
        let mut rest = message;
        while !rest.is_empty() {
            let field = crate::wire::Field::read(&mut rest)?;
            match field.number {
                oc_request::NODE => node = field.as_len(),
                oc_request::RESOURCE => resource = field.as_len(),
                oc_request::SPANS => {
                    check(field.value)?;
                    largest = largest.max(own_resource(field.value).map_or(0, <[u8]>::len));
                }
                _ => {}
            }
        }
        if node.is_none() && self.node.is_none() {
            return Err(TranslateError::NoNode);
        }
        let size = |new: Option<&[u8]>, old: &Option<Vec<u8>>| new.or(old.as_deref()).map_or(0, <[u8]>::len);
        if size(node, &self.node) + size(resource, &self.resource).max(largest) > MAX_SENDER {
            return Err(TranslateError::SenderTooLarge);
        }
        if node.is_some() || resource.is_some() {
            self.node = node.map(<[u8]>::to_vec).or(self.node.take());
            self.resource = resource.map(<[u8]>::to_vec).or(self.resource.take());
            self.attributes = resource::encode(self.node.as_deref(), self.resource.as_deref());
        }
        Ok(())
    }

    fn write(&self, message: &[u8], out: &mut Out<'_>) {
        let spans = || Fields::new(message).filter(|field| field.is_len(oc_request::SPANS)).map(|field| field.value);
        let mut shared = spans().filter(|span| own_resource(span).is_none()).peekable();
        if shared.peek().is_some() {
            entry(out, &self.attributes, shared);
        }
        for span in spans() {
            if let Some(resource) = own_resource(span) {
                let attributes = resource::encode(self.node.as_deref(), Some(resource));
                entry(out, &attributes, std::iter::once(span));
            }
        }
    }
}

/// The resource that a span has for itself.
fn own_resource(span: &[u8]) -> Option<&[u8]> {
    Fields::new(span).filter(|field| field.is_len(oc_span::RESOURCE)).last().map(|field| field.value)
}

/// A `ResourceSpans` of one scope.
fn entry<'a>(out: &mut Out<'_>, resource: &[u8], spans: impl Iterator<Item = &'a [u8]>) {
    out.message(request::RESOURCE_ENTRIES, |out| {
        out.bytes(resource_entry::RESOURCE, resource);
        out.message(resource_entry::SCOPE_ENTRIES, |out| {
            for span in spans {
                out.message(scope_entry::RECORDS, |out| span::write(span, out));
            }
        });
    });
}

/// Whether the fields of a message are well formed, one level deep: what is below is read as far as it goes.
fn check(message: &[u8]) -> Result<(), WireError> {
    let mut rest = message;
    while !rest.is_empty() {
        crate::wire::Field::read(&mut rest)?;
    }
    Ok(())
}

/// Reads export requests in JSON, one behind the other, and shows each as protobuf.
///
/// # Errors
///
/// If it is no JSON, or a field has a value that is not of its kind; the place is counted from the start of the
/// document that is wrong.
pub fn from_json(mut json: &[u8]) -> impl Iterator<Item = Result<Vec<u8>, json::Error>> {
    std::iter::from_fn(move || match json::decode_opencensus(json) {
        Ok(None) => None,
        Ok(Some((protobuf, taken))) => {
            json = json.get(taken..).unwrap_or_default();
            Some(Ok(protobuf))
        }
        Err(error) => {
            json = &[];
            Some(Err(error))
        }
    })
}
