//! Contexts in annotations of other tools. They are read, never written.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use serde::Deserialize;

use super::{Annotations, ContextSource, parse_or_count};
use crate::context;

/// Tekton's own limit.
const MAX_JSON_BYTES: usize = 1024;
/// Far more than the base64 form of a context takes.
const MAX_BASE64_BYTES: usize = 512;

/// Tekton's keys; the context of a task is nearer than that of its pipeline.
const TEKTON_KEYS: [&str; 3] =
    ["tekton.dev/taskrunSpanContext", "tekton.dev/customrunSpanContext", "tekton.dev/pipelinerunSpanContext"];
const BARE_KEY: &str = "traceparent";
const PROPOSAL_KEY: &str = "trace.kubernetes.io/context";

#[derive(Deserialize)]
struct TektonContext {
    traceparent: String,
    tracestate: Option<String>,
}

/// The first context that can be read.
pub(super) fn read_foreign_context(
    annotations: &Annotations,
    garbage: &mut u32,
) -> Option<(SpanContext, ContextSource)> {
    for key in TEKTON_KEYS {
        if let Some(context) = parse_or_count(annotations.get(key), parse_tekton, garbage) {
            return Some((context, ContextSource::Tekton));
        }
    }
    if let Some(context) = parse_or_count(annotations.get(BARE_KEY), |text| context::parse(text, None), garbage) {
        return Some((context, ContextSource::Bare));
    }
    parse_or_count(annotations.get(PROPOSAL_KEY), parse_proposal, garbage)
        .map(|context| (context, ContextSource::Proposal))
}

fn parse_tekton(text: &str) -> Option<SpanContext> {
    let tekton: TektonContext = (text.len() <= MAX_JSON_BYTES).then(|| serde_json::from_str(text).ok()).flatten()?;
    context::parse(&tekton.traceparent, tekton.tracestate.as_deref())
}

/// Base64 of a `traceparent` or of OpenCensus' binary form; some writers put the plain text there.
fn parse_proposal(text: &str) -> Option<SpanContext> {
    if text.len() > MAX_BASE64_BYTES {
        return None;
    }
    let Ok(bytes) = STANDARD.decode(text) else { return context::parse(text, None) };
    match std::str::from_utf8(&bytes).ok().and_then(|text| context::parse(text, None)) {
        Some(context) => Some(context),
        None => parse_opencensus_binary(&bytes),
    }
}

/// OpenCensus version 0: a tag and 16 bytes, a tag and 8 bytes, a tag and the options.
fn parse_opencensus_binary(bytes: &[u8]) -> Option<SpanContext> {
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
