//! One span.

use super::attributes::{self, Value, content, nanoseconds, number, pair, text, trace_state};
use super::fields::{oc_attributes, oc_event, oc_link, oc_span, oc_status};
use super::out::Out;
use crate::numbers::{event, link, span, status};
use crate::wire::Fields;

const KIND: &[u8] = b"span.kind";
const STATUS_CODE: &[u8] = b"otel.status_code";
const ERROR: u64 = 2;

/// Writes the content of an OTLP span.
pub(super) fn write(oc: &[u8], out: &mut Out<'_>) {
    let part = |number| content(oc, number);
    let attributes = part(oc_span::ATTRIBUTES).unwrap_or_default();
    let (kind, kind_attribute) = kind(number(oc, oc_span::KIND), attributes);
    let status = part(oc_span::STATUS);
    let status_code = status.and_then(|_| attributes::find(attributes, STATUS_CODE));

    id::<16>(span::TRACE_ID, part(oc_span::TRACE_ID), out);
    id::<8>(span::SPAN_ID, part(oc_span::SPAN_ID), out);
    trace_state(part(oc_span::TRACE_STATE), span::TRACE_STATE, out);
    id::<8>(span::PARENT_SPAN_ID, part(oc_span::PARENT_SPAN_ID), out);
    out.some_bytes(span::NAME, text(part(oc_span::NAME).unwrap_or_default()));
    out.some_uint(span::KIND, kind);
    out.some_fixed64(span::START, nanoseconds(part(oc_span::START).unwrap_or_default()));
    out.some_fixed64(span::END, nanoseconds(part(oc_span::END).unwrap_or_default()));

    let used = [kind_attribute.unwrap_or_default(), status_code.map_or(&[][..], |_| STATUS_CODE)];
    let left_out: Vec<&[u8]> = used.into_iter().filter(|key| !key.is_empty()).collect();
    attributes::write(attributes, span::ATTRIBUTES, &left_out, out);
    if let Some(same) = part(oc_span::SAME_PROCESS) {
        let value = Value::Bool(number(same, oc_attributes::INNER) != 0);
        pair(span::ATTRIBUTES, b"opencensus.same_process_as_parent_span", value, out);
    }
    out.some_uint(span::DROPPED_ATTRIBUTES, attributes::dropped(attributes));
    events(part(oc_span::TIME_EVENTS).unwrap_or_default(), out);
    links(part(oc_span::LINKS).unwrap_or_default(), out);
    if let Some(content) = status {
        write_status(content, status_code, out);
    }
}

/// An id of this length, filled up with zeroes or cut. One of zeroes alone is none.
fn id<const N: usize>(number: u32, sent: Option<&[u8]>, out: &mut Out<'_>) {
    let mut id = [0; N];
    for (byte, sent) in id.iter_mut().zip(sent.unwrap_or_default()) {
        *byte = *sent;
    }
    if id != [0; N] {
        out.bytes(number, &id);
    }
}

/// The `SpanKind`, and the attribute that it was in, if it was: OpenCensus has no kinds but two.
fn kind(kind: u64, attributes: &[u8]) -> (u64, Option<&'static [u8]>) {
    match kind as i32 {
        1 => (2, None),
        2 => (3, None),
        0 => match attributes::find(attributes, KIND) {
            Some(Value::String(b"internal")) => (1, Some(KIND)),
            Some(Value::String(b"producer")) => (4, Some(KIND)),
            Some(Value::String(b"consumer")) => (5, Some(KIND)),
            _ => (0, None),
        },
        _ => (0, None),
    }
}

/// 0 is no more than that nothing failed. The attribute has the last word; what is no number in it is 0.
fn write_status(content: &[u8], attribute: Option<Value<'_>>, out: &mut Out<'_>) {
    let code = match attribute {
        Some(Value::Int(code)) => u64::from(code as u32),
        Some(_) => 0,
        None if number(content, oc_status::CODE) as i32 == 0 => 0,
        None => ERROR,
    };
    out.message(span::STATUS, |out| {
        out.some_bytes(status::MESSAGE, self::content(content, oc_status::MESSAGE).unwrap_or_default());
        out.some_uint(status::CODE, code);
    });
}

fn events(content: &[u8], out: &mut Out<'_>) {
    for field in Fields::new(content).filter(|field| field.is_len(oc_event::EVENTS)) {
        out.message(span::EVENTS, |out| write_event(field.value, out));
    }
    let dropped = |field| number(content, field) as u32;
    let dropped = dropped(oc_event::DROPPED_MESSAGES).wrapping_add(dropped(oc_event::DROPPED_ANNOTATIONS));
    out.some_uint(span::DROPPED_EVENTS, dropped.into());
}

fn write_event(oc: &[u8], out: &mut Out<'_>) {
    out.some_fixed64(event::TIME, nanoseconds(content(oc, oc_event::TIME).unwrap_or_default()));
    let is_known = |number| matches!(number, oc_event::ANNOTATION | oc_event::MESSAGE);
    let known = Fields::new(oc).filter(|field| is_known(field.number) && field.as_len().is_some()).last();
    match known.map(|field| (field.number, field.value)) {
        Some((oc_event::ANNOTATION, annotation)) => {
            out.some_bytes(event::NAME, text(content(annotation, oc_event::DESCRIPTION).unwrap_or_default()));
            let attributes = content(annotation, oc_event::ATTRIBUTES).unwrap_or_default();
            attributes::write(attributes, event::ATTRIBUTES, &[], out);
            out.some_uint(event::DROPPED_ATTRIBUTES, attributes::dropped(attributes));
        }
        Some((_, message)) => {
            out.bytes(event::NAME, b"message");
            message_event(message, out);
        }
        None => out.bytes(event::NAME, b"An unknown OpenCensus TimeEvent type was detected when translating"),
    }
}

fn message_event(message: &[u8], out: &mut Out<'_>) {
    let kind = number(message, oc_event::TYPE) as i32;
    let unknown = kind.to_string();
    let kind = match kind {
        0 => "TYPE_UNSPECIFIED",
        1 => "SENT",
        2 => "RECEIVED",
        _ => &unknown,
    };
    pair(event::ATTRIBUTES, b"message.type", Value::String(kind.as_bytes()), out);
    for (key, field) in [
        ("messaging.message.id", oc_event::ID),
        ("messaging.message.payload_size_bytes", oc_event::UNCOMPRESSED),
        ("messaging.message.payload_compressed_size_bytes", oc_event::COMPRESSED),
    ] {
        pair(event::ATTRIBUTES, key.as_bytes(), Value::Int(number(message, field) as i64), out);
    }
}

fn links(content: &[u8], out: &mut Out<'_>) {
    for field in Fields::new(content).filter(|field| field.is_len(oc_link::LINKS)) {
        out.message(span::LINKS, |out| write_link(field.value, out));
    }
    out.some_uint(span::DROPPED_LINKS, u64::from(number(content, oc_link::DROPPED) as u32));
}

fn write_link(oc: &[u8], out: &mut Out<'_>) {
    id::<16>(link::TRACE_ID, content(oc, oc_link::TRACE_ID), out);
    id::<8>(link::SPAN_ID, content(oc, oc_link::SPAN_ID), out);
    trace_state(content(oc, oc_link::TRACE_STATE), link::TRACE_STATE, out);
    let attributes = content(oc, oc_link::ATTRIBUTES).unwrap_or_default();
    attributes::write(attributes, link::ATTRIBUTES, &[], out);
    out.some_uint(link::DROPPED_ATTRIBUTES, attributes::dropped(attributes));
}
