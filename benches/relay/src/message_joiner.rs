//! Joins many messages into one: their bytes are concatenated, as protobuf merges repeated fields.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::{gzip, receive::MessageFrames, settings, upstream::Upstream};

/// Joins messages and sends them on. The call with the last message of a batch sends the batch, so that no task
/// in between has to be woken for each message.
pub(crate) struct MessageJoiner {
    batch: Mutex<MessageBatch>,
    /// Number of messages in a batch.
    count: usize,
    deflate: bool,
    upstream: Upstream,
    in_flight: Arc<Semaphore>,
}

#[derive(Default)]
struct MessageBatch {
    /// The number of the batch, for the timer that was set for it.
    number: u64,
    messages: usize,
    frames: MessageFrames,
}

impl MessageJoiner {
    /// Creates an empty joiner.
    pub(crate) fn new(count: usize, deflate: bool, upstream: Upstream) -> Arc<Self> {
        let under_way = Arc::new(Semaphore::new(settings::MAX_IN_FLIGHT_REQUESTS));
        Arc::new(Self { batch: Mutex::default(), count, deflate, upstream, in_flight: under_way })
    }

    /// Adds a message. With a slow backend, the call that fills a batch waits.
    pub(crate) async fn add(self: &Arc<Self>, message: MessageFrames) {
        let full = {
            let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
            batch.frames.extend(message);
            batch.messages += 1;
            if batch.messages == 1 {
                tokio::spawn(Arc::clone(self).flush_later(batch.number));
            }
            (batch.messages >= self.count).then(|| batch.take())
        };
        if let Some(frames) = full {
            self.send(frames).await;
        }
    }

    /// Sends the open batch, and waits until everything has left.
    pub(crate) async fn finish(self: &Arc<Self>) {
        let rest = self.batch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if !rest.is_empty() {
            self.send(rest).await;
        }
        // `acquire_many` fails only on a closed semaphore; this one is never closed.
        let _ = self.in_flight.acquire_many(settings::MAX_IN_FLIGHT_REQUESTS as u32).await;
    }

    async fn flush_later(self: Arc<Self>, number: u64) {
        tokio::time::sleep(settings::FLUSH_INTERVAL).await;
        let late = {
            let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
            (batch.number == number).then(|| batch.take())
        };
        if let Some(frames) = late {
            self.send(frames).await;
        }
    }

    async fn send(self: &Arc<Self>, frames: MessageFrames) {
        let Ok(permit) = Arc::clone(&self.in_flight).acquire_owned().await else { return };
        let joiner = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = joiner.deliver(frames).await {
                eprintln!("failed to forward a batch: {error:#}");
            }
            drop(permit);
        });
    }

    async fn deliver(&self, frames: MessageFrames) -> anyhow::Result<()> {
        let frames = if self.deflate { vec![gzip::deflate(&frames)?] } else { frames };
        self.upstream.send(frames).await
    }
}

impl MessageBatch {
    fn take(&mut self) -> MessageFrames {
        self.number += 1;
        self.messages = 0;
        // The next batch will be as long as this one.
        let room = self.frames.len();
        std::mem::replace(&mut self.frames, Vec::with_capacity(room))
    }
}
