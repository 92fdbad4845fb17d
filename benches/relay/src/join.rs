//! Many messages become one: their bytes after each other, as protobuf merges repeated fields.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::{gzip, receive::Message, settings, upstream::Upstream};

/// Joins messages and sends them on. Whoever brings the last one of a batch sends it off, so that no task in between
/// has to be woken for each message.
pub(crate) struct Joiner {
    batch: Mutex<Batch>,
    /// How many messages make one.
    count: usize,
    deflate: bool,
    upstream: Upstream,
    under_way: Arc<Semaphore>,
}

#[derive(Default)]
struct Batch {
    /// Which batch this is, for the timer that was set for it.
    number: u64,
    messages: usize,
    frames: Message,
}

impl Joiner {
    /// A joiner with nothing in it.
    pub(crate) fn new(count: usize, deflate: bool, upstream: Upstream) -> Arc<Self> {
        let under_way = Arc::new(Semaphore::new(settings::UNDER_WAY));
        Arc::new(Self { batch: Mutex::default(), count, deflate, upstream, under_way })
    }

    /// Adds a message. When the backend is slow, the one that fills a batch waits.
    pub(crate) async fn add(self: &Arc<Self>, message: Message) {
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

    /// Sends what is there now, and waits until everything has left.
    pub(crate) async fn finish(self: &Arc<Self>) {
        let rest = self.batch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if !rest.is_empty() {
            self.send(rest).await;
        }
        // It is never closed, so that this only ends when all permits are back.
        let _ = self.under_way.acquire_many(settings::UNDER_WAY as u32).await;
    }

    async fn flush_later(self: Arc<Self>, number: u64) {
        tokio::time::sleep(settings::FLUSH).await;
        let late = {
            let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
            (batch.number == number).then(|| batch.take())
        };
        if let Some(frames) = late {
            self.send(frames).await;
        }
    }

    async fn send(self: &Arc<Self>, frames: Message) {
        let Ok(permit) = Arc::clone(&self.under_way).acquire_owned().await else { return };
        let joiner = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = joiner.deliver(frames).await {
                eprintln!("a batch is lost: {error:#}");
            }
            drop(permit);
        });
    }

    async fn deliver(&self, frames: Message) -> anyhow::Result<()> {
        let frames = if self.deflate { vec![gzip::deflate(&frames)?] } else { frames };
        self.upstream.send(frames).await
    }
}

impl Batch {
    fn take(&mut self) -> Message {
        self.number += 1;
        self.messages = 0;
        // The next one will be as long as this one.
        let room = self.frames.len();
        std::mem::replace(&mut self.frames, Vec::with_capacity(room))
    }
}
