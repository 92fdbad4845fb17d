//! Translates OpenCensus to OTLP: export requests of `opencensus.proto.agent.trace.v1` become
//! `ExportTraceServiceRequest`s.
//!
//! [`OpenCensusStream`] is one stream of such requests: each names its sender only if that differs from the
//! request before. The mapping is that of the Collector. Ids are padded or cut to their length; the kind may be
//! in the attribute `span.kind`, the status in `otel.status_code`; annotations and message events become
//! events; node and resource become the attributes of a resource. A span with a resource of its own goes into
//! an entry of its own. Stack traces, the number of children, the type of a link and the number of truncated
//! bytes of a text have no counterpart and are dropped.
//!
//! *Guaranteed*: [`scan`](crate::scan) accepts the output, whatever the input. A request can become much longer
//! (every message event has four attributes, every resource of a span repeats the node): memory is reserved
//! before it is used. The sender of a stream is remembered, with at most [`MAX_SENDER_BYTES`] bytes. *Not
//! done*: text is not checked for UTF-8; a message that is split into parts is not merged, the last part
//! counts; duplicate keys of a map become duplicate attributes, except in resources.

mod attributes;
mod opencensus_fields;
mod resource;
mod span;
mod time;
mod translation_output;

#[cfg(test)]
mod tests;

use crate::field_numbers::{request, resource_entry, scope_entry};
use crate::json;
use crate::wire::{WireError, WireFields};
use opencensus_fields::{oc_request, oc_span};
use resource::NodeAttributes;
use translation_output::TranslationOutput;

/// Limit of a node and a resource together. A few attributes are a few hundred bytes; a stream holds them for
/// as long as it lives.
pub const MAX_SENDER_BYTES: usize = 16 << 10;

/// A stream of requests, with the sender that they named last.
#[derive(Debug, Default)]
pub struct OpenCensusStream {
    node: Option<Vec<u8>>,
    resource: Option<Vec<u8>>,
    attributes: Vec<u8>,
}

/// Why a request cannot be translated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranslateError<E> {
    /// It is not an export request.
    #[error("not an OpenCensus export request: {0}")]
    Malformed(#[from] WireError),
    /// The first request of a stream does not name its sender.
    #[error("protocol violation: Export's first message must have a Node")]
    NoNode,
    /// The node or the resource is too large to be remembered.
    #[error("node and resource together are larger than {MAX_SENDER_BYTES} bytes")]
    SenderTooLarge,
    /// There is no memory for the translation.
    #[error("not enough memory for the translation")]
    Memory(E),
}

impl OpenCensusStream {
    /// Translates a request of this stream. `reserve` is called before memory is allocated, and may refuse it.
    pub fn translate<E>(
        &mut self,
        message: &[u8],
        mut reserve: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Vec<u8>, TranslateError<E>> {
        self.check_and_update_sender(message)?;
        let mut refusal = None;
        let mut ask = |more| reserve(more).map_err(|no| refusal = Some(no)).is_ok();
        let mut out = TranslationOutput::new(&mut ask);
        self.write(message, &mut out);
        let bytes = out.finish();
        refusal.map_or(Ok(bytes), |no| Err(TranslateError::Memory(no)))
    }

    /// Checks the request, and updates the sender.
    fn check_and_update_sender<E>(&mut self, message: &[u8]) -> Result<(), TranslateError<E>> {
        let mut node = None;
        let mut resource = None;
        let mut largest = 0;
        let mut rest = message;
        while !rest.is_empty() {
            let field = crate::wire::WireField::read(&mut rest)?;
            match field.number {
                oc_request::NODE => node = field.as_len(),
                oc_request::RESOURCE => resource = field.as_len(),
                oc_request::SPANS => {
                    check_fields(field.value)?;
                    largest = largest.max(own_resource(field.value).map_or(0, <[u8]>::len));
                }
                _ => {}
            }
        }
        if node.is_none() && self.node.is_none() {
            return Err(TranslateError::NoNode);
        }
        let size = |new: Option<&[u8]>, old: &Option<Vec<u8>>| new.or(old.as_deref()).map_or(0, <[u8]>::len);
        if size(node, &self.node) + size(resource, &self.resource).max(largest) > MAX_SENDER_BYTES {
            return Err(TranslateError::SenderTooLarge);
        }
        if node.is_some() || resource.is_some() {
            self.node = node.map(<[u8]>::to_vec).or(self.node.take());
            self.resource = resource.map(<[u8]>::to_vec).or(self.resource.take());
            self.attributes = NodeAttributes::new(self.node.as_deref()).encode(self.resource.as_deref());
        }
        Ok(())
    }

    fn write(&self, message: &[u8], out: &mut TranslationOutput<'_>) {
        let spans =
            || WireFields::new(message).filter(|field| field.is_len(oc_request::SPANS)).map(|field| field.value);
        let mut shared = spans().filter(|span| own_resource(span).is_none()).peekable();
        if shared.peek().is_some() {
            write_resource_spans(out, &self.attributes, shared);
        }
        let node = NodeAttributes::new(self.node.as_deref());
        for span in spans() {
            // After a refusal nothing more is written, and the rest of the work would be wasted.
            if out.is_refused() {
                return;
            }
            if let Some(resource) = own_resource(span) {
                let attributes = node.encode(Some(resource));
                write_resource_spans(out, &attributes, std::iter::once(span));
            }
        }
    }
}

/// The resource of a span, if it has one of its own.
fn own_resource(span: &[u8]) -> Option<&[u8]> {
    WireFields::new(span).filter(|field| field.is_len(oc_span::RESOURCE)).last().map(|field| field.value)
}

/// A `ResourceSpans` of one scope.
fn write_resource_spans<'a>(out: &mut TranslationOutput<'_>, resource: &[u8], spans: impl Iterator<Item = &'a [u8]>) {
    out.message(request::RESOURCE_ENTRIES, |out| {
        out.bytes(resource_entry::RESOURCE, resource);
        out.message(resource_entry::SCOPE_ENTRIES, |out| {
            for span in spans {
                out.message(scope_entry::RECORDS, |out| span::write(span, out));
            }
        });
    });
}

/// Checks that the fields of a message are well formed, one level deep: nested ones are not checked.
fn check_fields(message: &[u8]) -> Result<(), WireError> {
    let mut rest = message;
    while !rest.is_empty() {
        crate::wire::WireField::read(&mut rest)?;
    }
    Ok(())
}

/// Reads concatenated export requests in JSON, and returns each as protobuf.
///
/// # Errors
///
/// If the text is not JSON, or the value of a field has the wrong type; the position is relative to the start
/// of the wrong document.
pub fn from_json(mut json: &[u8]) -> impl Iterator<Item = Result<Vec<u8>, json::JsonError>> {
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
