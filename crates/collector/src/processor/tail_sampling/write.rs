//! From decisions to requests: what was kept leaves.

use std::sync::{Arc, atomic::Ordering};

use kubewake_otlp::Signal;

use super::{
    Lane, TailSampler,
    arrival::Arrival,
    output::{Draft, Kept, Piece},
    shard::{Rules, TICK, Work},
    store::Pages,
};
use crate::core::{Batch, Charge, Origin, Part};

/// What is written together is not much longer: small enough for every receiver.
const REQUEST_BYTES: usize = 512 << 10;
/// Nor does it have more spans. To put so many in order takes about a megabyte, for each shard.
const REQUEST_SPANS: usize = 4096;
/// Spans that come late leave in no more pieces: each repeats the resource that it is of, which may be most of a request.
const LATE_PIECES: usize = 8;

impl TailSampler {
    /// Hands on spans whose trace was decided on before.
    pub(super) fn forward(
        self: &Arc<Self>,
        lane: &Lane,
        part: &Part,
        arrival: &Arrival,
        at_once: &[(usize, Kept)],
        rules: &Rules,
    ) {
        if at_once.is_empty() {
            return;
        }
        let piece = |(at, kept): &(usize, Kept)| {
            let record = arrival.records.get(*at)?;
            Some(Piece {
                resource: arrival.resource_fields(arrival.resource_of(record.scope)),
                scope: arrival.scope_fields(record.scope),
                span: arrival.span_of(record),
                kept: *kept,
            })
        };
        // To put spans in order takes a few times what was charged to note them, so that it is done for a part of many at a time.
        for some in at_once.chunks(at_once.len().div_ceil(LATE_PIECES).max(REQUEST_SPANS)) {
            let draft = Draft::new(some.iter().filter_map(piece).collect(), &rules.marks(true));
            // Without memory for a copy it is the request's that covers it: it is a part of it.
            let charge = part.charge.another(draft.cost()).map_or_else(|| part.charge.clone(), Arc::new);
            self.send(lane, &draft, charge);
        }
    }

    fn send(self: &Arc<Self>, lane: &Lane, draft: &Draft<'_>, charge: Arc<Charge>) {
        let origin = Arc::<Origin>::default();
        let mut batch = Batch::empty(Signal::Traces);
        for (bytes, items) in draft.write() {
            batch.push(Part::new(bytes, items, origin.clone(), charge.clone()));
        }
        self.stats.outgoing.fetch_add(draft.items() as u64, Ordering::Relaxed);
        self.sampling.unreadable_trace_states.fetch_add(draft.unreadable(), Ordering::Relaxed);
        lane.outbox.push(batch, self);
    }

    /// Writes the spans of kept traces, and says which segments were held for all that it was given.
    pub(super) async fn write(self: &Arc<Self>, lane: &Lane, work: Vec<Work>, pages: Pages, rules: &Rules) -> Vec<u32> {
        let (mut segments, mut pieces) = (Vec::new(), Vec::new());
        let (mut bytes, mut seen) = (0, 0_usize);
        for work in work {
            let (mut place, mut last) = (work.tail, None);
            while let Some(stored) = pages.span(place) {
                if last.replace(place.segment) != Some(place.segment) {
                    segments.push(place.segment);
                }
                place = stored.before;
                seen += 1;
                if seen.is_multiple_of(REQUEST_SPANS) {
                    tokio::task::yield_now().await;
                }
                let Some(kept) = work.kept else { continue };
                bytes += stored.span.len();
                pieces.push(Piece { resource: stored.resource, scope: stored.scope, span: stored.span, kept });
                if bytes >= REQUEST_BYTES || pieces.len() >= REQUEST_SPANS {
                    bytes = 0;
                    self.send_when_there_is_memory(lane, std::mem::take(&mut pieces), rules).await;
                }
            }
        }
        if !pieces.is_empty() {
            self.send_when_there_is_memory(lane, pieces, rules).await;
        }
        segments
    }

    async fn send_when_there_is_memory(self: &Arc<Self>, lane: &Lane, pieces: Vec<Piece<'_>>, rules: &Rules) {
        let draft = Draft::new(pieces, &rules.marks(false));
        let charge = self.memory(lane, draft.cost()).await;
        self.send(lane, &draft, Arc::new(charge));
    }

    /// Memory for what is written. It comes from what is kept for requests under way, and back when they are sent. Where that is too little
    /// for one, as it can be where the whole limit is small, that one is written without: else nothing would ever leave.
    async fn memory(&self, lane: &Lane, bytes: u64) -> Charge {
        /// How often one looks while nothing is on its way out that could give memory back.
        const PATIENCE: u32 = 10;
        let mut looks = 0;
        while looks < PATIENCE {
            let account = self.account.load_full();
            let Some(account) = account else { break };
            let sent = lane.outbox.sent.notified();
            if let Some(charge) = account.another(bytes) {
                return charge;
            }
            let idle = tokio::time::timeout(TICK, sent).await.is_err() && lane.outbox.is_empty();
            looks = if idle { looks + 1 } else { 0 };
        }
        Charge::free()
    }
}
