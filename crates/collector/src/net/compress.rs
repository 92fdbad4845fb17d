//! Compression of request bodies.
//!
//! The requests of a batch go through the encoder one after another and are never joined first (except for
//! Snappy's block format, which cannot be streamed). Work is done in slices, so that a large batch does not
//! hold up the other tasks of its thread, and a request that times out stops at the next slice. At most as many
//! batches as there are cores are compressed at once; their encoders are reused.

mod codec;
mod request_body;

#[cfg(test)]
mod tests;

use std::io;

use bytes::Bytes;
use kubewake_config::model::CompressionType;
use kubewake_runtime::lock::Mutex;
use tokio::sync::Semaphore;

use codec::{ActiveEncoder, CompressionCodec, ReusableEncoder};
pub(crate) use request_body::RequestBody;

use crate::components::BuildError;

/// About a millisecond of work for the slowest encoder: other tasks of the thread wait no longer.
const SLICE_BYTES: usize = 64 << 10;

/// Compresses bodies with one algorithm.
pub(crate) struct BodyEncoder {
    codec: CompressionCodec,
    idle_encoders: Mutex<Vec<ReusableEncoder>>,
    permits: Semaphore,
}

impl BodyEncoder {
    /// An encoder of HTTP request bodies; `None` without compression.
    pub(crate) fn http(compression: CompressionType) -> Option<Self> {
        CompressionCodec::http(compression).map(Self::new)
    }

    /// An encoder of gRPC messages; `None` without compression.
    pub(crate) fn grpc(compression: CompressionType) -> Result<Option<Self>, BuildError> {
        match (compression, CompressionCodec::grpc(compression)) {
            (CompressionType::None, _) => Ok(None),
            (_, Some(codec)) => Ok(Some(Self::new(codec))),
            (_, None) => Err(BuildError("gRPC messages can be compressed with gzip, zstd or snappy".into())),
        }
    }

    fn new(codec: CompressionCodec) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { codec, idle_encoders: Mutex::default(), permits: Semaphore::new(cores) }
    }

    /// The name in `content-encoding` or `grpc-encoding`.
    pub(crate) fn name(&self) -> &'static str {
        self.codec.name()
    }

    /// The compressed concatenation of `parts`, after `room` bytes for the caller to fill.
    pub(crate) async fn encode<'a, I>(&self, parts: I, room: usize) -> io::Result<Vec<u8>>
    where
        I: Iterator<Item = &'a Bytes> + Clone + Send,
    {
        // `acquire` fails only on a closed semaphore; this one is never closed.
        let _turn = self.permits.acquire().await.map_err(io::Error::other)?;
        let total: usize = parts.clone().map(Bytes::len).sum();
        let mut running = self.start(total, room)?;
        let mut since = 0;
        for slice in parts.flat_map(|part| part.chunks(SLICE_BYTES)) {
            running.write(slice)?;
            since += slice.len();
            if since >= SLICE_BYTES {
                since = 0;
                tokio::task::yield_now().await;
            }
        }
        let (out, kept) = running.finish()?;
        self.recycle(kept);
        Ok(out)
    }

    fn start(&self, total: usize, room: usize) -> io::Result<ActiveEncoder> {
        let kept = self.idle_encoders.lock().pop();
        self.codec.start(kept, total, room)
    }

    fn recycle(&self, kept: Option<ReusableEncoder>) {
        self.idle_encoders.lock().extend(kept);
    }
}
