//! Compressed bodies for what is sent.
//!
//! The requests of a batch go through the encoder one after another and are never put together first (but for Snappy's
//! block format, which knows no stream). Work is done in slices, so that a large batch does not hold up the other tasks
//! of its thread, and a request whose time is up stops at the next slice. At most as many batches as there are cores are
//! compressed at once; their encoders are kept for the next ones.

mod codec;
mod payload;

#[cfg(test)]
mod tests;

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use kubewake_config::model::Compression;
use tokio::sync::Semaphore;

use codec::{Codec, Kept, Running};
pub(crate) use payload::Payload;

use crate::components::BuildError;

/// About a millisecond of work for the slowest encoder: other tasks of the thread wait no longer than that.
const SLICE: usize = 64 << 10;

/// Compresses bodies in one way.
pub(crate) struct Encoder {
    codec: Codec,
    kept: Mutex<Vec<Kept>>,
    turns: Semaphore,
}

impl Encoder {
    /// For the bodies of HTTP requests; `None` if they are not compressed.
    pub(crate) fn http(compression: Compression) -> Option<Self> {
        Codec::http(compression).map(Self::new)
    }

    /// For gRPC messages; `None` if they are not compressed.
    pub(crate) fn grpc(compression: Compression) -> Result<Option<Self>, BuildError> {
        match (compression, Codec::grpc(compression)) {
            (Compression::None, _) => Ok(None),
            (_, Some(codec)) => Ok(Some(Self::new(codec))),
            (_, None) => Err(BuildError("gRPC messages can be compressed with gzip, zstd or snappy".into())),
        }
    }

    fn new(codec: Codec) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { codec, kept: Mutex::default(), turns: Semaphore::new(cores) }
    }

    /// The name in `content-encoding` or `grpc-encoding`.
    pub(crate) fn name(&self) -> &'static str {
        self.codec.name()
    }

    /// The compressed concatenation of `parts`, behind `room` bytes for the caller to fill.
    pub(crate) async fn encode<'a, I>(&self, parts: I, room: usize) -> io::Result<Vec<u8>>
    where
        I: Iterator<Item = &'a Bytes> + Clone + Send,
    {
        // The semaphore is never closed, so there is always a turn to wait for.
        let _turn = self.turns.acquire().await.map_err(io::Error::other)?;
        let total: usize = parts.clone().map(Bytes::len).sum();
        let mut running = self.start(total, room)?;
        let mut since = 0;
        for slice in parts.flat_map(|part| part.chunks(SLICE)) {
            running.write(slice)?;
            since += slice.len();
            if since >= SLICE {
                since = 0;
                tokio::task::yield_now().await;
            }
        }
        let (out, kept) = running.finish()?;
        self.keep(kept);
        Ok(out)
    }

    fn start(&self, total: usize, room: usize) -> io::Result<Running> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        self.codec.start(kept, total, room)
    }

    fn keep(&self, kept: Option<Kept>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).extend(kept);
    }
}
