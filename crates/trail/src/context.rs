//! W3C trace context, read strictly and written canonically.
//!
//! Guaranteed: [`parse`] never panics and reads at most [`MAX_TRACEPARENT`] and [`MAX_TRACESTATE`] bytes; what it gives is valid and remote.
//! A `tracestate` that is malformed or too long is left out, and the context stays, as the specification asks.
//! Not done: baggage.

use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The header of the context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header of what vendors add to it.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of version 00, the only one that there is.
const LENGTH: usize = 55;
/// A later version may append fields. No specification knows more than one, so this is generous.
pub const MAX_TRACEPARENT: usize = 256;
/// What a vendor must at least propagate, and all that we do.
pub const MAX_TRACESTATE: usize = 512;
/// `sampled`, and `random` of the second level. Others are not passed on, as their meaning is not known.
const KNOWN_FLAGS: u8 = 0b11;

/// The context that the two values hold; none when the first is malformed.
#[must_use]
pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
    let text = traceparent.trim_matches([' ', '\t']);
    let bytes = text.as_bytes();
    if bytes.len() < LENGTH || bytes.len() > MAX_TRACEPARENT {
        return None;
    }
    let version = hex::<1>(bytes.get(..2)?)?;
    let (known, rest) = bytes.split_at_checked(LENGTH)?;
    match version {
        [0xff] => return None,
        [0] if !rest.is_empty() => return None,
        // A later version is read as this one, provided that it only appends.
        _ if rest.first().is_some_and(|byte| *byte != b'-') => return None,
        _ => {}
    }
    if [2, 35, 52].iter().any(|at| known.get(*at) != Some(&b'-')) {
        return None;
    }
    let trace = TraceId::from_bytes(hex(known.get(3..35)?)?);
    let span = SpanId::from_bytes(hex(known.get(36..52)?)?);
    let [flags] = hex::<1>(known.get(53..55)?)?;
    let context = SpanContext::new(trace, span, TraceFlags::new(flags & KNOWN_FLAGS), true, state(tracestate));
    context.is_valid().then_some(context)
}

/// The context of a request.
#[must_use]
pub fn extract(headers: &HeaderMap) -> Option<SpanContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next()?.to_str().ok()?;
    if parents.next().is_some() {
        // Whom to believe is not known.
        return None;
    }
    let mut states = headers.get_all(TRACESTATE).iter().map(HeaderValue::to_str);
    let state = match (states.next(), states.next()) {
        (Some(Ok(only)), None) => Some(only.to_owned()),
        (None, _) => None,
        _ => joined(headers),
    };
    parse(parent, state.as_deref())
}

/// `tracestate` may come in several headers, which are one list.
fn joined(headers: &HeaderMap) -> Option<String> {
    let parts: Result<Vec<_>, _> = headers.get_all(TRACESTATE).iter().map(HeaderValue::to_str).collect();
    parts.ok().map(|parts| parts.join(","))
}

/// Puts the context into a request, instead of any that is there.
pub fn inject(context: &SpanContext, headers: &mut HeaderMap) {
    let Ok(parent) = HeaderValue::try_from(traceparent(context)) else { return };
    headers.insert(TRACEPARENT, parent);
    match tracestate(context).map(HeaderValue::try_from) {
        Some(Ok(state)) => drop(headers.insert(TRACESTATE, state)),
        _ => drop(headers.remove(TRACESTATE)),
    }
}

/// The context as text, version 00.
#[must_use]
pub fn traceparent(context: &SpanContext) -> String {
    let flags = context.trace_flags().to_u8() & KNOWN_FLAGS;
    format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id())
}

/// What vendors added to the context, if anything.
#[must_use]
pub fn tracestate(context: &SpanContext) -> Option<String> {
    let text = context.trace_state().header();
    (!text.is_empty() && text.len() <= MAX_TRACESTATE).then_some(text)
}

fn state(text: Option<&str>) -> TraceState {
    text.filter(|text| text.len() <= MAX_TRACESTATE)
        .filter(|text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\t'))
        .and_then(|text| TraceState::from_str(text).ok())
        .unwrap_or_default()
}

/// Lower-case hexadecimal digits, twice as many as the bytes asked for.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
