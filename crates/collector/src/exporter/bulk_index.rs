//! What `elasticsearch` and `opensearch` share: documents, and the bulk API that takes them.
//!
//! *Guarantees.* A document is delivered when the answer says so, whatever the status of the whole answer is.
//! Documents that the destination has no room for (429, 5xx) are sent again, and only those; documents that it
//! rejects are counted with the reason. A request that is too large for the destination is halved, down to single
//! documents, and the size that it takes is remembered. An attempt that is sent again makes no document twice within
//! one index, because ids follow from the content ([`document_id`]).
//!
//! *Does not* create templates, indices or pipelines.

mod answer;
mod chunk;
mod cluster;
mod document;
mod document_id;
mod equal_records;
pub(super) mod index_name;

#[cfg(test)]
mod tests;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use http::StatusCode;
use kubewake_config::model::{BulkIndexConfig, DocumentIds};
use kubewake_otlp::Signal;

use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{
        BackendStatus, Batch, Charge, Code, ErrorClass, Exporter, RecordOutcome, RecordOutcomes, RejectReason,
        SendError, SendFuture, SendSuccess, heavy_work,
    },
};
use answer::DocumentStatus;
use chunk::{Chunk, ChunkStart, DocumentRules};
use cluster::{Cluster, ClusterAnswer};

/// A request is not made smaller than this because another one was too large: a single large document is no reason.
const MIN_LEARNED_BYTES: usize = 64 << 10;

pub(super) fn prepare(
    settings: &BulkIndexConfig,
    context: &ExporterContext<'_>,
) -> Result<PreparedExporter, BuildError> {
    let cluster = Cluster::new(settings, context.auth.as_ref())?;
    Ok(PreparedExporter::new(ExporterParts {
        destination: cluster.labels(),
        exporter: Arc::new(BulkExporter {
            cluster,
            rules: Arc::new(DocumentRules::new(settings, context.pipeline.signal, context.id)),
            max_bytes: AtomicUsize::new(usize::try_from(settings.max_bulk_bytes).unwrap_or(usize::MAX)),
        }),
        // Each request of an attempt has the time limit, because an attempt may take several.
        timeout: None,
        retry: settings.http.retry.clone(),
        queue: settings.http.queue.clone(),
    }))
}

struct BulkExporter {
    cluster: Cluster,
    rules: Arc<DocumentRules>,
    /// The size of a request; less than configured when the destination has refused one as too large.
    max_bytes: AtomicUsize,
}

impl Exporter for BulkExporter {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(self.export(batch))
    }
}

/// What is known about the records of a batch.
struct Delivery {
    outcomes: RecordOutcomes,
    /// The first message about a rejected document.
    rejection: String,
}

impl BulkExporter {
    async fn export(&self, batch: &Batch) -> Result<SendSuccess, SendError> {
        let _charge = outcome_charge(batch)?;
        let mut delivery = Delivery { outcomes: RecordOutcomes::unsent(batch.items()), rejection: String::new() };
        let result = self.send_all(batch, &mut delivery).await;
        let Delivery { mut outcomes, rejection } = delivery;
        if result.is_err() && self.rules.ids == DocumentIds::Content && batch.signal() == Signal::Logs {
            let owned = batch.clone();
            outcomes = heavy_work::run(batch.bytes(), move || equal_records::keep_together(&owned, outcomes)).await;
        }
        let unfinished = || result.err().unwrap_or_else(|| SendError::connection("not all documents were sent"));
        outcomes.into_result(batch, rejection, unfinished)
    }

    /// Sends one piece after another until all are sent, or one is not taken.
    async fn send_all(&self, batch: &Batch, delivery: &mut Delivery) -> Result<(), SendError> {
        let mut next = Some(ChunkStart::default());
        while let Some(start) = next.take() {
            let mut chunk = self.encode(batch, start).await?;
            next = chunk.next.take();
            chunk.records.clone().for_each(|record| delivery.outcomes.set(record, RecordOutcome::Delivered));
            self.send_chunk(&chunk, delivery).await?;
        }
        Ok(())
    }

    async fn encode(&self, batch: &Batch, start: ChunkStart) -> Result<Chunk, SendError> {
        let (owned, rules) = (batch.clone(), self.rules.clone());
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let compresses = self.cluster.compresses();
        heavy_work::run(batch.bytes().min(max_bytes), move || {
            chunk::encode(&owned, start, &rules, max_bytes, compresses, nanoseconds_now())
        })
        .await
    }

    /// Sends a piece, in smaller ones if it is too large for the destination.
    async fn send_chunk(&self, chunk: &Chunk, delivery: &mut Delivery) -> Result<(), SendError> {
        let mut congestion = None;
        let whole = 0..chunk.len();
        let mut pending = vec![whole];
        while let Some(range) = pending.pop().filter(|range| !range.is_empty()) {
            let body = chunk.body(&range);
            let size = body.len();
            match self.cluster.send(body, range.len(), chunk.may_compress).await {
                Ok(answer) => congestion = note_answer(chunk, &range, answer, delivery).or(congestion),
                Err(error) if is_too_large(&error) && range.len() == 1 => {
                    let outcome = RecordOutcome::Rejected(RejectReason::TooLarge);
                    delivery.note(chunk.record(range.start), outcome, &error.message);
                }
                Err(error) if is_too_large(&error) => {
                    self.learn(size);
                    let middle = range.start + range.len() / 2;
                    pending.push(middle..range.end);
                    pending.push(range.start..middle);
                }
                Err(error) => {
                    pending.push(range);
                    for document in pending.into_iter().flatten() {
                        delivery.outcomes.worsen(chunk.record(document), RecordOutcome::Unsent);
                    }
                    return Err(error);
                }
            }
        }
        congestion.map_or(Ok(()), Err)
    }

    /// Makes further requests half as large as one that was too large.
    fn learn(&self, too_large: usize) {
        let limit = (too_large / 2).max(MIN_LEARNED_BYTES);
        self.max_bytes.fetch_min(limit, Ordering::Relaxed);
    }
}

impl Delivery {
    fn note(&mut self, record: usize, outcome: RecordOutcome, message: &str) {
        self.outcomes.worsen(record, outcome);
        if self.rejection.is_empty() {
            self.rejection = message.to_owned();
        }
    }
}

/// Notes the status of each document. Returns an error if some are to be sent again.
fn note_answer(
    chunk: &Chunk,
    range: &Range<usize>,
    answer: ClusterAnswer,
    delivery: &mut Delivery,
) -> Option<SendError> {
    let rejection = answer.rejection.unwrap_or_default();
    let mut is_busy = false;
    for (document, status) in range.clone().zip(answer.statuses) {
        let record = chunk.record(document);
        match status {
            DocumentStatus::Stored => {}
            DocumentStatus::Busy => {
                is_busy = true;
                delivery.outcomes.worsen(record, RecordOutcome::Unsent);
            }
            DocumentStatus::Rejected(reason) => delivery.note(record, RecordOutcome::Rejected(reason), &rejection),
        }
    }
    is_busy.then(|| congestion_error(answer.congestion.unwrap_or_default()))
}

fn congestion_error(message: String) -> SendError {
    SendError {
        code: Code::ResourceExhausted,
        class: ErrorClass::Throttled,
        backend_status: Some(BackendStatus::Http(StatusCode::TOO_MANY_REQUESTS)),
        ..SendError::connection(message)
    }
}

fn is_too_large(error: &SendError) -> bool {
    error.backend_status == Some(BackendStatus::Http(StatusCode::PAYLOAD_TOO_LARGE))
}

/// Memory for what becomes of each record.
fn outcome_charge(batch: &Batch) -> Result<Option<Charge>, SendError> {
    use kubewake_otlp::Allowance;
    let Some(mut memory) = crate::core::WorkMemory::for_delivery(batch) else { return Ok(None) };
    if !memory.reserve(RecordOutcomes::bytes_for(batch.items())) {
        return Err(memory.send_error());
    }
    Ok(memory.into_charge())
}

fn nanoseconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
