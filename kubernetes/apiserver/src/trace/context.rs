//! W3C trace context, which is propagated between processes.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
/// The length that the specification requires to be propagated.
const MAX_TRACESTATE_BYTES: usize = 512;
const MAX_BAGGAGE_BYTES: usize = 8192;

/// The id of a trace; never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The id of a span; never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// The context of a span, possibly of another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub trace: TraceId,
    pub span: SpanId,
    /// The flags of `traceparent`; the first is "sampled".
    pub flags: u8,
    pub state: Option<Arc<str>>,
}

impl SpanContext {
    /// Extracts the context from headers. An invalid one is ignored.
    pub fn extract(headers: &HeaderMap) -> Option<Self> {
        let mut context = Self::parse(headers.get(TRACEPARENT)?.to_str().ok()?)?;
        context.state = state(headers);
        Some(context)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let version = hex::<1>(parts.next()?)?;
        let trace = TraceId::new(hex(parts.next()?)?)?;
        let span = SpanId::new(hex(parts.next()?)?)?;
        let [flags] = hex::<1>(parts.next()?)?;
        // Version 0 has four parts; later ones may have more; ff is invalid.
        let known = match version {
            [0] => parts.next().is_none(),
            [0xff] => false,
            _ => true,
        };
        known.then_some(Self { trace, span, flags: flags & 1, state: None })
    }

    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    pub fn inject(&self, headers: &mut HeaderMap) {
        if let Ok(parent) = HeaderValue::try_from(self.to_string()) {
            headers.insert(TRACEPARENT, parent);
        }
        if let Some(state) = self.state.as_deref().and_then(|state| HeaderValue::from_str(state).ok()) {
            headers.insert(TRACESTATE, state);
        }
    }
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:?}-{:?}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// The `baggage` header, which is propagated with or without a trace.
pub(super) fn baggage(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut all = headers.get_all(BAGGAGE).iter();
    let first = all.next()?;
    let joined = match all.next() {
        None => first.clone(),
        Some(_) => {
            let all: Vec<&[u8]> = headers.get_all(BAGGAGE).iter().map(HeaderValue::as_bytes).collect();
            HeaderValue::from_bytes(&all.join(&b","[..])).ok()?
        }
    };
    (joined.len() <= MAX_BAGGAGE_BYTES).then_some(joined)
}

pub(super) fn inject_baggage(baggage: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(BAGGAGE, baggage.clone());
}

fn state(headers: &HeaderMap) -> Option<Arc<str>> {
    let all: Vec<&str> = headers.get_all(TRACESTATE).iter().filter_map(|value| value.to_str().ok()).collect();
    let joined = all.join(",");
    (!joined.is_empty() && joined.len() <= MAX_TRACESTATE_BYTES).then(|| joined.into())
}

/// Lower-case hex of exactly this many bytes, as the specification requires.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = digits else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

impl TraceId {
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    pub fn random() -> Self {
        Self(fastrand::u128(1..).to_be_bytes())
    }

    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The lower half as a number, which sampling is based on.
    pub fn lower_half(self) -> u64 {
        u128::from_be_bytes(self.0) as u64
    }
}

impl SpanId {
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    pub fn random() -> Self {
        Self(fastrand::u64(1..).to_be_bytes())
    }

    pub fn bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}
