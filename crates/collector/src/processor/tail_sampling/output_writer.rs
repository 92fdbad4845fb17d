//! Writes the spans of kept traces as requests, and puts them into the outbox.

use std::sync::{Arc, atomic::Ordering};

use kubewake_otlp::Signal;

use super::{
    ShardLane, TailSampler,
    arrival::ParsedArrival,
    output::{KeepRecord, OutputSpan, RequestDraft},
    shard::{TICK_INTERVAL, TailSamplingRules, TraceWork},
    span_store::SegmentSnapshot,
};
use crate::core::{Batch, Charge, Origin, Part};

/// Approximate limit of a request: small enough for every receiver.
const MAX_REQUEST_BYTES: usize = 512 << 10;
/// Limit of a request's spans. Sorting so many takes about a megabyte, for each shard.
const MAX_REQUEST_SPANS: usize = 4096;
/// Limit of the requests for late spans: each repeats the resource, which may be most of a request.
const MAX_LATE_CHUNKS: usize = 8;

impl TailSampler {
    /// Hands on late spans of traces that were decided before.
    pub(super) fn forward(
        self: &Arc<Self>,
        lane: &ShardLane,
        part: &Part,
        arrival: &ParsedArrival,
        at_once: &[(usize, KeepRecord)],
        rules: &TailSamplingRules,
    ) {
        if at_once.is_empty() {
            return;
        }
        let piece = |(at, kept): &(usize, KeepRecord)| {
            let record = arrival.records.get(*at)?;
            Some(OutputSpan {
                resource: arrival.resource_fields(arrival.resource_of_scope(record.scope)),
                scope: arrival.scope_fields(record.scope),
                span: arrival.span_bytes(record),
                kept: *kept,
            })
        };
        // Sorting takes a few times the memory that was charged for the facts of the spans, so that many spans
        // are sorted in parts.
        for some in at_once.chunks(at_once.len().div_ceil(MAX_LATE_CHUNKS).max(MAX_REQUEST_SPANS)) {
            let draft = RequestDraft::new(some.iter().filter_map(piece).collect(), &rules.output_options(true));
            // Without memory for a copy the request's own charge covers it: it is a part of the request.
            let charge = part.charge.reserve_copy(draft.cost()).map_or_else(|| part.charge.clone(), Arc::new);
            self.send(lane, &draft, charge);
        }
    }

    fn send(self: &Arc<Self>, lane: &ShardLane, draft: &RequestDraft<'_>, charge: Arc<Charge>) {
        let origin = Arc::<Origin>::default();
        let mut batch = Batch::empty(Signal::Traces);
        for (bytes, items) in draft.write() {
            batch.push(Part::new(bytes, items, origin.clone(), charge.clone()));
        }
        self.stats.outgoing.fetch_add(draft.items() as u64, Ordering::Relaxed);
        self.sampling.unreadable_trace_states.fetch_add(draft.unreadable(), Ordering::Relaxed);
        lane.outbox.push(batch, self);
    }

    /// Writes the spans of kept traces; returns the segments that were held for all the given traces.
    pub(super) async fn write(
        self: &Arc<Self>,
        lane: &ShardLane,
        work: Vec<TraceWork>,
        pages: SegmentSnapshot,
        rules: &TailSamplingRules,
    ) -> Vec<u32> {
        let mut segments = Vec::new();
        let mut pieces = Vec::new();
        let mut bytes = 0;
        let mut seen = 0_usize;
        for work in work {
            let mut place = work.tail;
            let mut last = None;
            while let Some(stored) = pages.read(place) {
                if last.replace(place.segment) != Some(place.segment) {
                    segments.push(place.segment);
                }
                place = stored.before;
                seen += 1;
                if seen.is_multiple_of(MAX_REQUEST_SPANS) {
                    tokio::task::yield_now().await;
                }
                let Some(kept) = work.kept else { continue };
                bytes += stored.span.len();
                pieces.push(OutputSpan { resource: stored.resource, scope: stored.scope, span: stored.span, kept });
                if bytes >= MAX_REQUEST_BYTES || pieces.len() >= MAX_REQUEST_SPANS {
                    bytes = 0;
                    self.send_waiting_for_memory(lane, std::mem::take(&mut pieces), rules).await;
                }
            }
        }
        if !pieces.is_empty() {
            self.send_waiting_for_memory(lane, pieces, rules).await;
        }
        segments
    }

    async fn send_waiting_for_memory(
        self: &Arc<Self>,
        lane: &ShardLane,
        pieces: Vec<OutputSpan<'_>>,
        rules: &TailSamplingRules,
    ) {
        let draft = RequestDraft::new(pieces, &rules.output_options(false));
        let charge = self.reserve_output(lane, draft.cost()).await;
        self.send(lane, &draft, Arc::new(charge));
    }

    /// Reserves memory for output. It is taken from the reserve for requests under way, and given back when
    /// they are sent. Where that reserve is too small for one request, as it can be with a small limit, the
    /// request is written uncharged: else nothing would ever leave.
    async fn reserve_output(&self, lane: &ShardLane, bytes: u64) -> Charge {
        /// Number of attempts while nothing is in the outbox that could give memory back.
        const MAX_IDLE_ATTEMPTS: u32 = 10;
        let mut looks = 0;
        while looks < MAX_IDLE_ATTEMPTS {
            let account = self.account.load_full();
            let Some(account) = account else { break };
            let sent = lane.outbox.sent.notified();
            if let Some(charge) = account.reserve_copy(bytes) {
                return charge;
            }
            let idle = tokio::time::timeout(TICK_INTERVAL, sent).await.is_err() && lane.outbox.is_empty();
            looks = if idle { looks + 1 } else { 0 };
        }
        Charge::exempt()
    }
}
