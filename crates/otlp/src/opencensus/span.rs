//! Translates one span.

use super::attributes::{self, OpenCensusValue, content, nanoseconds, number, pair, text, trace_state};
use super::opencensus_fields::{oc_attributes, oc_event, oc_link, oc_span, oc_status};
use super::translation_output::TranslationOutput;
use crate::field_numbers::{event, link, span, status};
use crate::wire::WireFields;

const KIND_ATTRIBUTE: &[u8] = b"span.kind";
const STATUS_CODE_ATTRIBUTE: &[u8] = b"otel.status_code";
const STATUS_ERROR: u64 = 2;

/// Writes the content of an OTLP span.
pub(super) fn write(oc: &[u8], out: &mut TranslationOutput<'_>) {
    let part = |number| content(oc, number);
    let attributes = part(oc_span::ATTRIBUTES).unwrap_or_default();
    let (kind, kind_attribute) = kind(number(oc, oc_span::KIND), attributes);
    let status = part(oc_span::STATUS);
    let status_code = status.and_then(|_| attributes::find(attributes, STATUS_CODE_ATTRIBUTE));

    id::<16>(span::TRACE_ID, part(oc_span::TRACE_ID), out);
    id::<8>(span::SPAN_ID, part(oc_span::SPAN_ID), out);
    trace_state(part(oc_span::TRACE_STATE), span::TRACE_STATE, out);
    id::<8>(span::PARENT_SPAN_ID, part(oc_span::PARENT_SPAN_ID), out);
    out.nonempty_bytes(span::NAME, text(part(oc_span::NAME).unwrap_or_default()));
    out.nonzero_uint(span::KIND, kind);
    out.nonzero_fixed64(span::START, nanoseconds(part(oc_span::START).unwrap_or_default()));
    out.nonzero_fixed64(span::END, nanoseconds(part(oc_span::END).unwrap_or_default()));

    let used = [kind_attribute.unwrap_or_default(), status_code.map_or(&[][..], |_| STATUS_CODE_ATTRIBUTE)];
    let left_out: Vec<&[u8]> = used.into_iter().filter(|key| !key.is_empty()).collect();
    attributes::write(attributes, span::ATTRIBUTES, &left_out, out);
    if let Some(same) = part(oc_span::SAME_PROCESS) {
        let value = OpenCensusValue::Bool(number(same, oc_attributes::INNER) != 0);
        pair(span::ATTRIBUTES, b"opencensus.same_process_as_parent_span", value, out);
    }
    out.nonzero_uint(span::DROPPED_ATTRIBUTES, attributes::dropped(attributes));
    events(part(oc_span::TIME_EVENTS).unwrap_or_default(), out);
    links(part(oc_span::LINKS).unwrap_or_default(), out);
    if let Some(content) = status {
        write_status(content, status_code, out);
    }
}

/// Writes an id, padded with zeroes or cut to this length. An id of zeroes alone counts as none.
fn id<const N: usize>(number: u32, sent: Option<&[u8]>, out: &mut TranslationOutput<'_>) {
    let mut id = [0; N];
    for (byte, sent) in id.iter_mut().zip(sent.unwrap_or_default()) {
        *byte = *sent;
    }
    if id != [0; N] {
        out.bytes(number, &id);
    }
}

/// The `SpanKind`, and the attribute that it was read from, if any: OpenCensus has only two kinds.
fn kind(kind: u64, attributes: &[u8]) -> (u64, Option<&'static [u8]>) {
    match kind as i32 {
        1 => (2, None),
        2 => (3, None),
        0 => match attributes::find(attributes, KIND_ATTRIBUTE) {
            Some(OpenCensusValue::String(b"internal")) => (1, Some(KIND_ATTRIBUTE)),
            Some(OpenCensusValue::String(b"producer")) => (4, Some(KIND_ATTRIBUTE)),
            Some(OpenCensusValue::String(b"consumer")) => (5, Some(KIND_ATTRIBUTE)),
            _ => (0, None),
        },
        _ => (0, None),
    }
}

/// Writes the status. Code 0 only means that nothing failed. The attribute takes precedence; text that is no
/// number counts as 0.
fn write_status(content: &[u8], attribute: Option<OpenCensusValue<'_>>, out: &mut TranslationOutput<'_>) {
    let code = match attribute {
        Some(OpenCensusValue::Int(code)) => u64::from(code as u32),
        Some(_) => 0,
        None if number(content, oc_status::CODE) as i32 == 0 => 0,
        None => STATUS_ERROR,
    };
    out.message(span::STATUS, |out| {
        out.nonempty_bytes(status::MESSAGE, self::content(content, oc_status::MESSAGE).unwrap_or_default());
        out.nonzero_uint(status::CODE, code);
    });
}

fn events(content: &[u8], out: &mut TranslationOutput<'_>) {
    for field in WireFields::new(content).filter(|field| field.is_len(oc_event::EVENTS)) {
        out.message(span::EVENTS, |out| write_event(field.value, out));
    }
    let dropped = |field| number(content, field) as u32;
    let dropped = dropped(oc_event::DROPPED_MESSAGES).wrapping_add(dropped(oc_event::DROPPED_ANNOTATIONS));
    out.nonzero_uint(span::DROPPED_EVENTS, dropped.into());
}

fn write_event(oc: &[u8], out: &mut TranslationOutput<'_>) {
    out.nonzero_fixed64(event::TIME, nanoseconds(content(oc, oc_event::TIME).unwrap_or_default()));
    let is_known = |number| matches!(number, oc_event::ANNOTATION | oc_event::MESSAGE);
    let known = WireFields::new(oc).filter(|field| is_known(field.number) && field.as_len().is_some()).last();
    match known.map(|field| (field.number, field.value)) {
        Some((oc_event::ANNOTATION, annotation)) => {
            out.nonempty_bytes(event::NAME, text(content(annotation, oc_event::DESCRIPTION).unwrap_or_default()));
            let attributes = content(annotation, oc_event::ATTRIBUTES).unwrap_or_default();
            attributes::write(attributes, event::ATTRIBUTES, &[], out);
            out.nonzero_uint(event::DROPPED_ATTRIBUTES, attributes::dropped(attributes));
        }
        Some((_, message)) => {
            out.bytes(event::NAME, b"message");
            message_event(message, out);
        }
        None => out.bytes(event::NAME, b"An unknown OpenCensus TimeEvent type was detected when translating"),
    }
}

fn message_event(message: &[u8], out: &mut TranslationOutput<'_>) {
    let kind = number(message, oc_event::TYPE) as i32;
    let unknown = kind.to_string();
    let kind = match kind {
        0 => "TYPE_UNSPECIFIED",
        1 => "SENT",
        2 => "RECEIVED",
        _ => &unknown,
    };
    pair(event::ATTRIBUTES, b"message.type", OpenCensusValue::String(kind.as_bytes()), out);
    for (key, field) in [
        ("messaging.message.id", oc_event::ID),
        ("messaging.message.payload_size_bytes", oc_event::UNCOMPRESSED),
        ("messaging.message.payload_compressed_size_bytes", oc_event::COMPRESSED),
    ] {
        pair(event::ATTRIBUTES, key.as_bytes(), OpenCensusValue::Int(number(message, field) as i64), out);
    }
}

fn links(content: &[u8], out: &mut TranslationOutput<'_>) {
    for field in WireFields::new(content).filter(|field| field.is_len(oc_link::LINKS)) {
        out.message(span::LINKS, |out| write_link(field.value, out));
    }
    out.nonzero_uint(span::DROPPED_LINKS, u64::from(number(content, oc_link::DROPPED) as u32));
}

fn write_link(oc: &[u8], out: &mut TranslationOutput<'_>) {
    id::<16>(link::TRACE_ID, content(oc, oc_link::TRACE_ID), out);
    id::<8>(link::SPAN_ID, content(oc, oc_link::SPAN_ID), out);
    trace_state(content(oc, oc_link::TRACE_STATE), link::TRACE_STATE, out);
    let attributes = content(oc, oc_link::ATTRIBUTES).unwrap_or_default();
    attributes::write(attributes, link::ATTRIBUTES, &[], out);
    out.nonzero_uint(link::DROPPED_ATTRIBUTES, attributes::dropped(attributes));
}
