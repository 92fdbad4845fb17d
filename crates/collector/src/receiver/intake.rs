//! What both protocols do with a body once they have it.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use kubewake_otlp::{Allowance, NoMemory, Signal, Summary};
use tokio::sync::Semaphore;

use super::senders::SenderShares;
use crate::core::{
    Admission, Answer, Arrival, Code, Intake, Origin, ReceiverStats, Refusal, RefusalKind, SenderShare, Shortfall,
    TurnedAway, heavy,
};

/// A whole request, uncompressed.
#[derive(Clone)]
pub(super) struct Payload {
    pub(super) bytes: Bytes,
    /// The memory that it holds on to.
    pub(super) held: usize,
}

impl From<Vec<u8>> for Payload {
    fn from(body: Vec<u8>) -> Self {
        Self { held: body.capacity(), bytes: body.into() }
    }
}

/// Checks bodies, hands them in, and counts.
pub(super) struct Taker {
    intake: Arc<Intake>,
    stats: Arc<ReceiverStats>,
    senders: SenderShares,
    watches: Arc<Semaphore>,
}

/// `Watch` calls of gRPC's health service, of all connections together.
const MAX_WATCHES: usize = 1024;

impl Taker {
    pub(super) fn new(intake: Arc<Intake>, stats: Arc<ReceiverStats>) -> Self {
        Self { intake, stats, senders: SenderShares::default(), watches: Arc::new(Semaphore::new(MAX_WATCHES)) }
    }

    /// Whether any pipeline wants this signal.
    pub(super) fn serves(&self, signal: Signal) -> bool {
        self.intake.serves(signal)
    }

    /// Places for `Watch` calls.
    pub(super) fn watches(&self) -> &Arc<Semaphore> {
        &self.watches
    }

    /// Who sends on a connection from this address.
    pub(super) fn peer(&self, address: SocketAddr) -> Peer {
        let plain = Arc::new(Origin { peer: Some(address), ..Origin::default() });
        Peer { plain, address: address.ip(), share: self.senders.for_address(address.ip()) }
    }

    /// Begins a body of which not everything is here, and that claims to have this length. Memory is reserved as it arrives.
    pub(super) fn begin_arrival(&self, signal: Signal, claim: usize, peer: &Peer) -> Result<Arrival, Refusal> {
        self.intake.begin_arrival(signal, claim, &peer.share)
    }

    /// Reserves memory for a body of this length, which is here as a whole.
    pub(super) fn admit(&self, signal: Signal, bytes: usize) -> Result<Admission, Refusal> {
        self.intake.admit(signal, bytes)
    }

    /// Counts how a call ended, and how long it took.
    pub(super) fn called(&self, signal: Signal, code: Code, took: Duration) {
        self.stats.calls(signal).record(code, took);
    }

    /// Counts a request that was refused before its items were known.
    pub(super) fn turn_away(&self, reason: TurnedAway) {
        self.stats.turn_away(reason);
    }

    /// Hands in a whole request, and says what of it was not taken.
    pub(super) async fn take(
        &self,
        signal: Signal,
        body: Payload,
        admission: Admission,
        origin: Arc<Origin>,
        peer: &Peer,
    ) -> Result<Option<Box<Shortfall>>, Refusal> {
        let (items, answer) = self.hand_in(signal, body, admission, origin, peer).await?;
        self.wait(signal, items, answer).await.inspect_err(|refusal| self.count(signal, items, refusal))
    }

    /// As [`Taker::take`], for a sender that cannot be told to come back, nor what was not taken: where there is no room it waits for it, as long
    /// as `end` does not come first.
    pub(super) async fn take_in_the_end(
        &self,
        signal: Signal,
        body: Payload,
        mut admission: Admission,
        origin: Arc<Origin>,
        peer: &Peer,
        end: &mut (impl Future + Unpin),
    ) -> Result<(), Refusal> {
        let mut pause = Pause::default();
        loop {
            let (items, answer) = self.hand_in(signal, body.clone(), admission, origin.clone(), peer).await?;
            let refusal = match self.wait(signal, items, answer).await {
                Ok(_) => return Ok(()),
                Err(refusal) if refusal.is_want_of_room() => refusal,
                Err(refusal) => {
                    self.count(signal, items, &refusal);
                    return Err(refusal);
                }
            };
            // It is held on to, so that the memory is taken again before it waits.
            admission = match self.admit_in_the_end(signal, body.held, end).await {
                Ok(admission) if pause.wait(end).await => admission,
                _ => {
                    self.count(signal, items, &refusal);
                    return Err(refusal);
                }
            };
        }
    }

    /// As [`Taker::admit`], waiting for memory.
    pub(super) async fn admit_in_the_end(
        &self,
        signal: Signal,
        bytes: usize,
        end: &mut (impl Future + Unpin),
    ) -> Result<Admission, Refusal> {
        let mut pause = Pause::default();
        loop {
            match self.admit(signal, bytes) {
                Err(refusal) if refusal.is_want_of_room() && pause.wait(end).await => drop(refusal),
                result => return result,
            }
        }
    }

    /// Checks a request and submits it: its items, and whether they are taken. All that its pipelines do with it before it is in a
    /// buffer happens here, so that a large one is handed in from a thread of its own.
    async fn hand_in(
        &self,
        signal: Signal,
        body: Payload,
        mut admission: Admission,
        origin: Arc<Origin>,
        peer: &Peer,
    ) -> Result<(u64, Answer), Refusal> {
        if body.bytes.len() < heavy::HEAVY_BYTES {
            return hand_in(signal, body, admission, origin, &self.stats);
        }
        let stats = self.stats.clone();
        // In a box, as most calls have no use for the room that its state takes.
        Box::pin(async move {
            admission.take_place(&peer.share).await;
            heavy::elsewhere(move || hand_in(signal, body, admission, origin, &stats)).await
        })
        .await
    }

    /// Waits for an answer, and counts what was taken and what never will be. A refusal is left to the caller, who may try again.
    async fn wait(&self, signal: Signal, items: u64, answer: Answer) -> Result<Option<Box<Shortfall>>, Refusal> {
        let shortfall = match answer {
            Answer::Partly(shortfall) => Some(shortfall),
            answer => answer.wait().await.map(|()| None)?,
        };
        let missing = shortfall.as_ref().map_or(0, |shortfall| shortfall.items);
        self.stats.refused().add(signal, missing);
        self.stats.accepted().add(signal, items.saturating_sub(missing));
        Ok(shortfall)
    }

    fn count(&self, signal: Signal, items: u64, refusal: &Refusal) {
        let counter = match refusal.kind {
            RefusalKind::BadRequest => self.stats.failed(),
            _ => self.stats.refused(),
        };
        counter.add(signal, items);
    }
}

/// Checks a request and submits it: its items, and whether they are taken.
fn hand_in(
    signal: Signal,
    body: Payload,
    mut admission: Admission,
    origin: Arc<Origin>,
    stats: &ReceiverStats,
) -> Result<(u64, Answer), Refusal> {
    let summary = kubewake_otlp::scan(signal, &body.bytes).map_err(|error| {
        stats.turn_away(TurnedAway::Malformed);
        Refusal::invalid(error.to_string())
    })?;
    if summary.items == 0 {
        return Ok((0, Answer::Now(Ok(()))));
    }
    // With ids of zeroes nothing is known, so that what is known is true without them, too.
    let Summary { items, zero_ids, traits, .. } = summary;
    let bytes = if zero_ids { clear_zero_ids(signal, &body.bytes, &mut admission, stats)? } else { body.bytes };
    admission.shrink_to(body.held);
    Ok((items as u64, admission.submit(bytes, items, traits, origin)))
}

#[cold]
fn clear_zero_ids(
    signal: Signal,
    bytes: &Bytes,
    admission: &mut Admission,
    stats: &ReceiverStats,
) -> Result<Bytes, Refusal> {
    let mut memory = AdmittedMemory::for_work(admission);
    kubewake_otlp::clear_zero_ids_within(signal, bytes, &mut memory).map_err(|NoMemory| {
        let refusal = memory.refusal.take().unwrap_or_else(Refusal::memory);
        stats.turn_away(if refusal.is_retryable() { TurnedAway::Memory } else { TurnedAway::TooLarge });
        refusal
    })
}

/// Memory from the accounts of all pipelines that let a request in.
pub(super) struct AdmittedMemory<'a> {
    admission: &'a mut Admission,
    grow: fn(&mut Admission, usize) -> Result<(), Refusal>,
    reserved: usize,
    refusal: Option<Refusal>,
}

impl<'a> AdmittedMemory<'a> {
    /// For work that is over soon.
    fn for_work(admission: &'a mut Admission) -> Self {
        Self { admission, grow: Admission::grow_for_work, reserved: 0, refusal: None }
    }

    /// For what the request becomes.
    pub(super) fn to_hold(admission: &'a mut Admission) -> Self {
        Self { admission, grow: Admission::grow, reserved: 0, refusal: None }
    }

    /// What was reserved, and what to tell the sender if not all of it was.
    pub(super) fn into_outcome(self) -> (usize, Option<Refusal>) {
        (self.reserved, self.refusal)
    }
}

impl Allowance for AdmittedMemory<'_> {
    fn reserve(&mut self, bytes: usize) -> bool {
        self.refusal = (self.grow)(self.admission, bytes).err();
        let is_granted = self.refusal.is_none();
        self.reserved += if is_granted { bytes } else { 0 };
        is_granted
    }
}

/// Longer and longer waits for room.
pub(super) struct Pause(Duration);

impl Default for Pause {
    /// A queue that is sent from has room again within milliseconds.
    fn default() -> Self {
        Self(Duration::from_millis(20))
    }
}

impl Pause {
    /// Waits; false if `end` comes first.
    pub(super) async fn wait(&mut self, end: &mut (impl Future + Unpin)) -> bool {
        let pause = self.0;
        self.0 = (pause * 2).min(Refusal::RETRY_AFTER);
        tokio::select! {
            biased;
            _ = end => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

/// Who sends on a connection. One value serves all its requests, unless they carry something of their own.
pub(super) struct Peer {
    plain: Arc<Origin>,
    pub(super) address: IpAddr,
    share: Arc<SenderShare>,
}

impl Peer {
    /// What its sender may hold and have done at once.
    pub(super) fn share(&self) -> &Arc<SenderShare> {
        &self.share
    }

    /// The origin of one request.
    pub(super) fn origin(&self, headers: &HeaderMap, subject: Option<String>, include_metadata: bool) -> Arc<Origin> {
        if subject.is_none() && !include_metadata {
            return self.plain.clone();
        }
        let metadata = if include_metadata { metadata(headers) } else { Vec::new() };
        Arc::new(Origin { subject, metadata, ..(*self.plain).clone() })
    }
}

/// Credentials are not metadata: whoever needs them has the subject.
const NOT_METADATA: [http::HeaderName; 3] =
    [http::header::AUTHORIZATION, http::header::COOKIE, http::header::PROXY_AUTHORIZATION];

fn metadata(headers: &HeaderMap) -> Vec<(String, String)> {
    let shown = headers.iter().filter(|(name, _)| !NOT_METADATA.contains(name));
    shown.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))).collect()
}
