//! Submits request bodies to the pipelines: scan, account, count. Shared by all protocols.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use kubewake_otlp::{Allowance, NoMemory, ScanSummary, Signal};
use tokio::sync::Semaphore;

use super::sender_shares::SenderShares;
use crate::core::{
    ArrivingReservation, Code, ConsumeOutcome, EarlyRefusal, Origin, PartialSuccess, PipelineSet, ReceiverStats,
    Refusal, RefusalKind, RequestReservation, SenderShare, heavy_work,
};

#[derive(Clone)]
pub(super) struct RequestPayload {
    pub(super) bytes: Bytes,
    /// Bytes of memory that the body keeps allocated.
    pub(super) held_bytes: usize,
}

impl From<Vec<u8>> for RequestPayload {
    fn from(body: Vec<u8>) -> Self {
        Self { held_bytes: body.capacity(), bytes: body.into() }
    }
}

/// Scans request bodies, submits them to the pipelines, and counts the outcome.
pub(super) struct RequestSubmitter {
    intake: Arc<PipelineSet>,
    stats: Arc<ReceiverStats>,
    senders: SenderShares,
    watches: Arc<Semaphore>,
}

/// Limit of concurrent `Watch` calls of gRPC's health service, over all connections.
const MAX_HEALTH_WATCHES: usize = 1024;

impl RequestSubmitter {
    pub(super) fn new(intake: Arc<PipelineSet>, stats: Arc<ReceiverStats>) -> Self {
        Self { intake, stats, senders: SenderShares::default(), watches: Arc::new(Semaphore::new(MAX_HEALTH_WATCHES)) }
    }

    /// Whether any pipeline accepts this signal.
    pub(super) fn serves(&self, signal: Signal) -> bool {
        self.intake.serves(signal)
    }

    pub(super) fn watch_permits(&self) -> &Arc<Semaphore> {
        &self.watches
    }

    /// The sender behind a connection from this address.
    pub(super) fn sender_peer(&self, address: SocketAddr) -> SenderPeer {
        let plain = Arc::new(Origin { peer: Some(address), ..Origin::default() });
        SenderPeer { default_origin: plain, address: address.ip(), share: self.senders.for_address(address.ip()) }
    }

    /// Begins a body of this announced length that has not arrived completely. Memory is reserved as the body
    /// arrives.
    pub(super) fn begin_arrival(
        &self,
        signal: Signal,
        claim: usize,
        peer: &SenderPeer,
    ) -> Result<ArrivingReservation, Refusal> {
        self.intake.begin_arrival(signal, claim, &peer.share)
    }

    /// Reserves memory for a body of this length that has arrived completely.
    pub(super) fn reserve(&self, signal: Signal, bytes: usize) -> Result<RequestReservation, Refusal> {
        self.intake.reserve(signal, bytes)
    }

    /// Counts a finished call by its status, and records its duration.
    pub(super) fn record_call(&self, signal: Signal, code: Code, took: Duration) {
        self.stats.calls(signal).record(code, took);
    }

    /// Counts a request that was refused before its items were known.
    pub(super) fn count_early_refusal(&self, reason: EarlyRefusal) {
        self.stats.count_early_refusal(reason);
    }

    /// Submits a whole request; returns the part of it that was rejected.
    pub(super) async fn submit(
        &self,
        signal: Signal,
        body: RequestPayload,
        admission: RequestReservation,
        origin: Arc<Origin>,
        peer: &SenderPeer,
    ) -> Result<Option<Box<PartialSuccess>>, Refusal> {
        let (items, answer) = self.scan_and_submit(signal, body, admission, origin, peer).await?;
        self.wait_and_count(signal, items, answer)
            .await
            .inspect_err(|refusal| self.count_refused(signal, items, refusal))
    }

    /// As [`RequestSubmitter::submit`], for a protocol without "retry later" and without partial success: waits
    /// for room as long as `end` does not resolve.
    pub(super) async fn submit_waiting(
        &self,
        signal: Signal,
        body: RequestPayload,
        mut admission: RequestReservation,
        origin: Arc<Origin>,
        peer: &SenderPeer,
        end: &mut (impl Future + Unpin),
    ) -> Result<(), Refusal> {
        let mut pause = RoomBackoff::default();
        loop {
            let (items, answer) = self.scan_and_submit(signal, body.clone(), admission, origin.clone(), peer).await?;
            let refusal = match self.wait_and_count(signal, items, answer).await {
                Ok(_) => return Ok(()),
                Err(refusal) if refusal.is_lack_of_room() => refusal,
                Err(refusal) => {
                    self.count_refused(signal, items, &refusal);
                    return Err(refusal);
                }
            };
            // The body is kept, so that its memory is reserved again before the wait for room.
            admission = match self.reserve_waiting(signal, body.held_bytes, end).await {
                Ok(admission) if pause.wait(end).await => admission,
                _ => {
                    self.count_refused(signal, items, &refusal);
                    return Err(refusal);
                }
            };
        }
    }

    /// As [`RequestSubmitter::reserve`], but waits for memory.
    pub(super) async fn reserve_waiting(
        &self,
        signal: Signal,
        bytes: usize,
        end: &mut (impl Future + Unpin),
    ) -> Result<RequestReservation, Refusal> {
        let mut pause = RoomBackoff::default();
        loop {
            match self.reserve(signal, bytes) {
                Err(refusal) if refusal.is_lack_of_room() && pause.wait(end).await => drop(refusal),
                result => return result,
            }
        }
    }

    /// Scans a request and submits it; returns its item count and the pending outcome. Everything that
    /// pipelines do with the request before it is buffered happens here, so that a large one is submitted from
    /// another thread.
    async fn scan_and_submit(
        &self,
        signal: Signal,
        body: RequestPayload,
        mut admission: RequestReservation,
        origin: Arc<Origin>,
        peer: &SenderPeer,
    ) -> Result<(u64, ConsumeOutcome), Refusal> {
        if body.bytes.len() < heavy_work::HEAVY_WORK_MIN_BYTES {
            return scan_and_submit(signal, body, admission, origin, &self.stats);
        }
        let stats = self.stats.clone();
        // Boxed, as most calls do not need the space of its state.
        Box::pin(async move {
            admission.acquire_heavy_work_slot(&peer.share).await;
            heavy_work::run_on_pool(move || scan_and_submit(signal, body, admission, origin, &stats)).await
        })
        .await
    }

    /// Waits for the outcome, and counts accepted and permanently rejected items. A refusal is left to the
    /// caller, which may retry.
    async fn wait_and_count(
        &self,
        signal: Signal,
        items: u64,
        answer: ConsumeOutcome,
    ) -> Result<Option<Box<PartialSuccess>>, Refusal> {
        let shortfall = match answer {
            ConsumeOutcome::Partial(shortfall) => Some(shortfall),
            answer => answer.wait().await.map(|()| None)?,
        };
        let missing = shortfall.as_ref().map_or(0, |shortfall| shortfall.items);
        self.stats.refused().add(signal, missing);
        self.stats.accepted().add(signal, items.saturating_sub(missing));
        Ok(shortfall)
    }

    fn count_refused(&self, signal: Signal, items: u64, refusal: &Refusal) {
        let counter = match refusal.kind {
            RefusalKind::BadRequest => self.stats.failed(),
            _ => self.stats.refused(),
        };
        counter.add(signal, items);
    }
}

/// Scans a request and submits it; returns its item count and the pending outcome.
fn scan_and_submit(
    signal: Signal,
    body: RequestPayload,
    mut admission: RequestReservation,
    origin: Arc<Origin>,
    stats: &ReceiverStats,
) -> Result<(u64, ConsumeOutcome), Refusal> {
    let summary = kubewake_otlp::scan(signal, &body.bytes).map_err(|error| {
        stats.count_early_refusal(EarlyRefusal::Malformed);
        Refusal::invalid(error.to_string())
    })?;
    if summary.items == 0 {
        return Ok((0, ConsumeOutcome::Now(Ok(()))));
    }
    // The scan reports no traits for a request with all-zero ids, so that they also hold without the ids.
    let ScanSummary { items, zero_ids, traits, .. } = summary;
    let bytes = if zero_ids { clear_zero_ids(signal, &body.bytes, &mut admission, stats)? } else { body.bytes };
    admission.shrink_to(body.held_bytes);
    admission.hold_origin(&origin)?;
    Ok((items as u64, admission.submit(bytes, items, traits, origin)))
}

#[cold]
fn clear_zero_ids(
    signal: Signal,
    bytes: &Bytes,
    admission: &mut RequestReservation,
    stats: &ReceiverStats,
) -> Result<Bytes, Refusal> {
    let mut memory = ReservedMemory::for_transient_work(admission);
    kubewake_otlp::clear_zero_ids_within(signal, bytes, &mut memory).map_err(|NoMemory| {
        let refusal = memory.refusal.take().unwrap_or_else(Refusal::out_of_memory);
        stats.count_early_refusal(if refusal.is_retryable() { EarlyRefusal::Memory } else { EarlyRefusal::TooLarge });
        refusal
    })
}

/// Memory from the accounts of all pipelines that accept a request.
pub(super) struct ReservedMemory<'a> {
    admission: &'a mut RequestReservation,
    grow: fn(&mut RequestReservation, usize) -> Result<(), Refusal>,
    reserved: usize,
    refusal: Option<Refusal>,
}

impl<'a> ReservedMemory<'a> {
    /// For work of short duration.
    fn for_transient_work(admission: &'a mut RequestReservation) -> Self {
        Self { admission, grow: RequestReservation::grow_for_work, reserved: 0, refusal: None }
    }

    /// For the memory that the request keeps.
    pub(super) fn for_held_bytes(admission: &'a mut RequestReservation) -> Self {
        Self { admission, grow: RequestReservation::grow, reserved: 0, refusal: None }
    }

    /// The bytes that were reserved, and the refusal if some were not.
    pub(super) fn into_outcome(self) -> (usize, Option<Refusal>) {
        (self.reserved, self.refusal)
    }
}

impl Allowance for ReservedMemory<'_> {
    fn reserve(&mut self, bytes: usize) -> bool {
        self.refusal = (self.grow)(self.admission, bytes).err();
        let is_granted = self.refusal.is_none();
        self.reserved += if is_granted { bytes } else { 0 };
        is_granted
    }
}

/// Increasing delays between attempts to get room.
pub(super) struct RoomBackoff(Duration);

impl Default for RoomBackoff {
    /// A queue that makes progress has room again within milliseconds.
    fn default() -> Self {
        Self(Duration::from_millis(20))
    }
}

impl RoomBackoff {
    /// Waits; false if `end` resolves first.
    pub(super) async fn wait(&mut self, end: &mut (impl Future + Unpin)) -> bool {
        let pause = self.0;
        self.0 = (pause * 2).min(Refusal::DEFAULT_RETRY_AFTER);
        tokio::select! {
            biased;
            _ = end => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

/// The sender behind a connection. One value serves all its requests, unless they carry metadata of their own.
pub(super) struct SenderPeer {
    default_origin: Arc<Origin>,
    pub(super) address: IpAddr,
    share: Arc<SenderShare>,
}

impl SenderPeer {
    /// The sender's share of memory and of concurrent work.
    pub(super) fn share(&self) -> &Arc<SenderShare> {
        &self.share
    }

    /// The origin of one request from this sender.
    pub(super) fn origin(&self, headers: &HeaderMap, subject: Option<String>, include_metadata: bool) -> Arc<Origin> {
        if subject.is_none() && !include_metadata {
            return self.default_origin.clone();
        }
        let metadata = if include_metadata { request_metadata(headers) } else { Vec::new() };
        Arc::new(Origin { subject, metadata, ..(*self.default_origin).clone() })
    }
}

/// Credentials are not metadata: processors that need the identity have the subject.
const CREDENTIAL_HEADERS: [http::HeaderName; 3] =
    [http::header::AUTHORIZATION, http::header::COOKIE, http::header::PROXY_AUTHORIZATION];

fn request_metadata(headers: &HeaderMap) -> Vec<(String, String)> {
    let shown = headers.iter().filter(|(name, _)| !CREDENTIAL_HEADERS.contains(name));
    shown.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))).collect()
}
