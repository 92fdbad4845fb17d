//! Where others leave a context. These are read, never written.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use serde::Deserialize;

use super::{Annotations, Source, parsed};
use crate::context;

/// Tekton's own limit.
const MAX_JSON: usize = 1024;
/// Far more than a context in base 64 takes.
const MAX_BASE64: usize = 512;

/// Tekton: a task's is nearer than that of its pipeline.
const TEKTON: [&str; 3] =
    ["tekton.dev/taskrunSpanContext", "tekton.dev/customrunSpanContext", "tekton.dev/pipelinerunSpanContext"];
const BARE: &str = "traceparent";
const PROPOSAL: &str = "trace.kubernetes.io/context";

#[derive(Deserialize)]
struct Tekton {
    traceparent: String,
    tracestate: Option<String>,
}

/// The first context that can be read.
pub(super) fn read(annotations: &Annotations, garbage: &mut u32) -> Option<(SpanContext, Source)> {
    for key in TEKTON {
        if let Some(context) = parsed(annotations.get(key), tekton, garbage) {
            return Some((context, Source::Tekton));
        }
    }
    if let Some(context) = parsed(annotations.get(BARE), |text| context::parse(text, None), garbage) {
        return Some((context, Source::Bare));
    }
    parsed(annotations.get(PROPOSAL), proposal, garbage).map(|context| (context, Source::Proposal))
}

fn tekton(text: &str) -> Option<SpanContext> {
    let tekton: Tekton = (text.len() <= MAX_JSON).then(|| serde_json::from_str(text).ok()).flatten()?;
    context::parse(&tekton.traceparent, tekton.tracestate.as_deref())
}

/// Base 64 of a `traceparent`, or of OpenCensus' binary form; some wrote the text as it is.
fn proposal(text: &str) -> Option<SpanContext> {
    if text.len() > MAX_BASE64 {
        return None;
    }
    let Ok(bytes) = STANDARD.decode(text) else { return context::parse(text, None) };
    match std::str::from_utf8(&bytes).ok().and_then(|text| context::parse(text, None)) {
        Some(context) => Some(context),
        None => open_census(&bytes),
    }
}

/// Version 0: a tag and sixteen bytes, a tag and eight, a tag and the options.
fn open_census(bytes: &[u8]) -> Option<SpanContext> {
    let bytes: &[u8; 29] = bytes.try_into().ok()?;
    let [0, 0, rest @ ..] = bytes else { return None };
    let (trace, rest) = rest.split_first_chunk::<16>()?;
    let [1, rest @ ..] = rest else { return None };
    let (span, rest) = rest.split_first_chunk::<8>()?;
    let [2, options] = rest else { return None };
    let flags = TraceFlags::new(options & 1);
    let context =
        SpanContext::new(TraceId::from_bytes(*trace), SpanId::from_bytes(*span), flags, true, TraceState::default());
    context.is_valid().then_some(context)
}
