//! `tail_sampling`: arriving spans, and those that are kept.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use kubewake_collector::fuzzing;
use kubewake_otlp::{Signal, view};
use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use prost::Message as _;
use tokio::runtime::{Builder, Runtime};

use super::processor;
use crate::{choice, memory::bounded};

thread_local! {
    static RUNTIME: LazyCell<Runtime> =
        LazyCell::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime can be made"));
}

/// Policies that keep some traces: by properties of spans, by their number, and by chance.
const POLICIES: [&str; 4] = [
    "[{name: all, type: always_sample}]",
    "[{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]",
    "[{name: slow, type: latency, latency: {threshold_ms: 100}}, {name: many, type: span_count, span_count: {min_spans: 3}}]",
    "[{name: k, type: string_attribute, string_attribute: {key: k, values: [a]}}, \
      {name: some, type: probabilistic, probabilistic: {sampling_percentage: 50}}]",
];

/// Number of spans of each kind, and of each trace.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    spans: BTreeMap<Vec<u8>, usize>,
    traces: BTreeMap<Vec<u8>, usize>,
}

impl Counted {
    fn add(&mut self, mut span: Span) {
        *self.traces.entry(trace_of(&span)).or_default() += 1;
        // The decision is recorded there.
        span.trace_state.clear();
        *self.spans.entry(span.encode_to_vec()).or_default() += 1;
    }
}

/// The id of the trace; one id for all spans without a valid one.
fn trace_of(span: &Span) -> Vec<u8> {
    if span.trace_id.len() == 16 { span.trace_id.clone() } else { vec![0; 16] }
}

/// The spans in these requests, if prost reads all of them.
fn counted<'a>(requests: impl IntoIterator<Item = &'a Bytes>) -> Option<Counted> {
    let mut counted = Counted::default();
    for request in requests {
        let request = ExportTraceServiceRequest::decode(request.clone()).ok()?;
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).for_each(|span| counted.add(span));
    }
    Some(counted)
}

fn number_of_spans(requests: &[Bytes]) -> usize {
    let spans = |request: &Bytes| {
        view::resources(request).flat_map(|resource| resource.scopes()).flat_map(|scope| scope.spans()).count()
    };
    requests.iter().map(spans).sum()
}

/// Every span is emitted once or not at all, unchanged but for its trace state, and all spans of a trace or
/// none. Late spans follow the decision on their trace.
pub(super) fn whole_traces(data: &[u8]) {
    let (choice, bytes) = choice(data);
    let policies = POLICIES[choice % POLICIES.len()];
    let shards = 1 + choice / 4 % 3;
    let settings = processor(&format!(
        "tail_sampling: {{decision_wait: 10s, num_shards: {shards}, decision_cache: {{sampled_cache_size: 1000, non_sampled_cache_size: 1000}}, policies: {policies}}}"
    ));
    // Requests of the same round are decided together; the spans of the second round are late, or new.
    let mut requests = Vec::new();
    let mut rest = bytes;
    while let Some((length, tail)) = rest.split_first() {
        let (request, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        if let Ok(summary) = kubewake_otlp::scan(Signal::Traces, request) {
            requests.push((Bytes::copy_from_slice(request), summary.items));
        }
    }
    let late = requests.split_off(requests.len().div_ceil(2));
    let sent: Vec<Vec<Bytes>> =
        [&requests, &late].map(|round| round.iter().map(|(request, _)| request.clone()).collect()).into();
    let items: usize = requests.iter().chain(&late).map(|(_, items)| items).sum();
    let kept = bounded("tail sampling", bytes.len() + 512 * items, 16, 4 << 20, || {
        RUNTIME.with(|runtime| runtime.block_on(fuzzing::sample(settings, vec![requests, late])))
    });
    let kept = kept.expect("what was scanned is taken");
    for (sent, kept) in sent.iter().zip(&kept) {
        for request in kept.iter() {
            kubewake_otlp::scan(Signal::Traces, request).expect("what is handed on is a request");
        }
        assert!(number_of_spans(kept) <= number_of_spans(sent));
    }
    let Some(sent) = sent.iter().map(counted).collect::<Option<Vec<_>>>() else { return };
    let kept: Vec<Counted> = kept.iter().map(|kept| counted(kept).expect("prost reads what is handed on")).collect();
    let mut decided = BTreeSet::new();
    for (sent, kept) in sent.iter().zip(&kept) {
        for (span, count) in &kept.spans {
            assert!(sent.spans.get(span).is_some_and(|sent| count <= sent), "more than came of {span:?}");
        }
        for (trace, count) in &kept.traces {
            assert_eq!(sent.traces.get(trace), Some(count), "a part of trace {trace:?} is kept");
        }
        for trace in sent.traces.keys() {
            let is_kept = kept.traces.contains_key(trace);
            decided.insert((trace.clone(), is_kept));
        }
    }
    let (yes, no): (Vec<_>, Vec<_>) = decided.iter().partition(|(_, is_kept)| *is_kept);
    assert!(!yes.iter().any(|(trace, _)| no.iter().any(|(other, _)| other == trace)), "late spans have another fate");
}
