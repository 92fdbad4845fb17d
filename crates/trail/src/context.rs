//! W3C trace context, parsed strictly and written canonically.
//!
//! *Guaranteed*: [`parse`] never panics and reads at most [`MAX_TRACEPARENT`] and [`MAX_TRACESTATE`] bytes; the
//! contexts that it returns are valid and remote. A malformed or too long `tracestate` is dropped and the
//! context kept, as the specification asks. *Not done*: baggage.

use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The header of the trace context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header of the vendors' additions to the trace context.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of version 00, the only version so far.
const TRACEPARENT_LENGTH: usize = 55;
/// A later version may append fields. No specification defines one, so this is generous.
pub const MAX_TRACEPARENT: usize = 256;
/// The minimum that the specification asks vendors to propagate, and our maximum.
pub const MAX_TRACESTATE: usize = 512;
/// `sampled`, and `random` of level 2. Unknown flags are not passed on.
const KNOWN_FLAGS: u8 = 0b11;

/// Parses the two header values; none when `traceparent` is malformed.
#[must_use]
pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
    let text = traceparent.trim_matches([' ', '\t']);
    let bytes = text.as_bytes();
    if bytes.len() < TRACEPARENT_LENGTH || bytes.len() > MAX_TRACEPARENT {
        return None;
    }
    let version = decode_hex::<1>(bytes.get(..2)?)?;
    let (known, rest) = bytes.split_at_checked(TRACEPARENT_LENGTH)?;
    match version {
        [0xff] => return None,
        [0] if !rest.is_empty() => return None,
        // A later version is parsed as version 00, provided that it only appends fields.
        _ if rest.first().is_some_and(|byte| *byte != b'-') => return None,
        _ => {}
    }
    if [2, 35, 52].iter().any(|at| known.get(*at) != Some(&b'-')) {
        return None;
    }
    let trace = TraceId::from_bytes(decode_hex(known.get(3..35)?)?);
    let span = SpanId::from_bytes(decode_hex(known.get(36..52)?)?);
    let [flags] = decode_hex::<1>(known.get(53..55)?)?;
    let context =
        SpanContext::new(trace, span, TraceFlags::new(flags & KNOWN_FLAGS), true, parse_tracestate(tracestate));
    context.is_valid().then_some(context)
}

/// The context in the headers of a request.
#[must_use]
pub fn extract(headers: &HeaderMap) -> Option<SpanContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next()?.to_str().ok()?;
    if parents.next().is_some() {
        // Several `traceparent` headers: none of them can be trusted over the others.
        return None;
    }
    let mut states = headers.get_all(TRACESTATE).iter().map(HeaderValue::to_str);
    let state = match (states.next(), states.next()) {
        (Some(Ok(only)), None) => Some(only.to_owned()),
        (None, _) => None,
        _ => joined_tracestate(headers),
    };
    parse(parent, state.as_deref())
}

/// Joins several `tracestate` headers, which form one list.
fn joined_tracestate(headers: &HeaderMap) -> Option<String> {
    let parts: Result<Vec<_>, _> = headers.get_all(TRACESTATE).iter().map(HeaderValue::to_str).collect();
    parts.ok().map(|parts| parts.join(","))
}

/// Writes the context to the headers and replaces any existing one.
pub fn inject(context: &SpanContext, headers: &mut HeaderMap) {
    let Ok(parent) = HeaderValue::try_from(traceparent(context)) else { return };
    headers.insert(TRACEPARENT, parent);
    match tracestate(context).map(HeaderValue::try_from) {
        Some(Ok(state)) => drop(headers.insert(TRACESTATE, state)),
        _ => drop(headers.remove(TRACESTATE)),
    }
}

/// Formats the context as a `traceparent` of version 00.
#[must_use]
pub fn traceparent(context: &SpanContext) -> String {
    let flags = context.trace_flags().to_u8() & KNOWN_FLAGS;
    format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id())
}

/// Formats the `tracestate` of the context, if it has any.
#[must_use]
pub fn tracestate(context: &SpanContext) -> Option<String> {
    let text = context.trace_state().header();
    (!text.is_empty() && text.len() <= MAX_TRACESTATE).then_some(text)
}

fn parse_tracestate(text: Option<&str>) -> TraceState {
    text.filter(|text| text.len() <= MAX_TRACESTATE)
        .filter(|text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\t'))
        .and_then(|text| TraceState::from_str(text).ok())
        .unwrap_or_default()
}

/// Decodes lower-case hexadecimal digits; their number must be twice the number of bytes.
fn decode_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = decode_hex_digit(*high)? << 4 | decode_hex_digit(*low)?;
    }
    Some(bytes)
}

fn decode_hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
