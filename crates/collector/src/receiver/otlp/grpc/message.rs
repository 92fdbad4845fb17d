//! Reads the message of a unary gRPC call: a prefix of five bytes, and as many more as it announces.

use std::fmt::Display;

use bytes::{Buf, Bytes};
use http_body::Body;
use http_body_util::BodyExt;

use crate::{
    core::{Code, Refusal, RequestReservation},
    receiver::{
        body_buffer::BodyBuffer,
        body_timeout::BodyProgress,
        grpc_calls::{bad_request, internal_error},
    },
};

/// A message of at least this size that arrived in one frame stays in HTTP/2's read buffer. A smaller one is
/// copied, as a few bytes would otherwise keep a whole read buffer allocated.
const IN_PLACE_MIN_BYTES: usize = 32 << 10;

/// Bytes that a message in a read buffer may keep allocated, as a multiple of its length. HTTP/2 reads a frame
/// into a buffer of the frame's size or of 64 KiB, whichever is larger.
pub(super) const HELD_BYTES_FACTOR: usize = 2;

/// The frames of a call: an HTTP/2 body.
pub(super) trait FrameBody: Body<Data = Bytes, Error: Display> + Unpin {}

impl<B: Body<Data = Bytes, Error: Display> + Unpin> FrameBody for B {}

/// A message as it arrived.
pub(super) struct GrpcMessage {
    pub(super) bytes: Bytes,
    pub(super) compressed: bool,
    /// The message is still in its read buffer: see [`HELD_BYTES_FACTOR`].
    pub(super) in_place: bool,
}

/// Reads one message of at most `max` bytes. Its memory is reserved before anything is allocated for it.
pub(super) async fn read_message(
    body: &mut impl FrameBody,
    max: usize,
    pace: &BodyProgress,
    reserve: &mut impl MessageMemory,
) -> Result<GrpcMessage, Refusal> {
    let (prefix, frame) = read_prefix(body).await?;
    let [flag, length @ ..] = prefix;
    let length = u32::from_be_bytes(length) as usize;
    if length > max {
        let message = format!("grpc: received message larger than max ({length} vs. {max})");
        return Err(bad_request(Code::ResourceExhausted, message));
    }
    let (bytes, in_place) = if frame.len() >= length {
        reserve.reserve_whole(length)?;
        let in_place = frame.len() == length && length >= IN_PLACE_MIN_BYTES;
        (if in_place { single_frame(body, frame).await? } else { copy_message(body, frame, length).await? }, in_place)
    } else {
        (read_chunks(body, frame, length, pace, reserve).await?, false)
    };
    Ok(GrpcMessage { bytes, compressed: flag != 0, in_place })
}

/// Source of the memory of a message.
pub(super) trait MessageMemory {
    /// Reserves the memory of a message that has arrived completely.
    fn reserve_whole(&mut self, length: usize) -> Result<(), Refusal>;

    /// Makes a buffer for a message that has arrived in part.
    fn begin_buffer(&mut self, length: usize) -> Result<BodyBuffer, Refusal>;

    /// Takes over the memory of a message that has arrived.
    fn finish(&mut self, admission: Option<RequestReservation>);
}

/// Reads the prefix; returns it with the rest of its frame.
async fn read_prefix(body: &mut impl FrameBody) -> Result<([u8; 5], Bytes), Refusal> {
    let mut frame = expect_data(body).await?;
    // Nearly always the prefix is in one frame.
    if let Some(prefix) = frame.first_chunk().copied() {
        frame.advance(prefix.len());
        return Ok((prefix, frame));
    }
    let mut prefix = [0u8; 5];
    let mut missing = &mut prefix[..];
    while !missing.is_empty() {
        if !frame.has_remaining() {
            frame = expect_data(body).await?;
        }
        let n = missing.len().min(frame.len());
        let (now, later) = std::mem::take(&mut missing).split_at_mut(n);
        frame.copy_to_slice(now);
        missing = later;
    }
    Ok((prefix, frame))
}

/// Reads the next data frame; an error at the end of the body.
async fn expect_data(body: &mut impl FrameBody) -> Result<Bytes, Refusal> {
    next_data(body).await?.ok_or_else(|| internal_error("the call ended before its message arrived"))
}

/// A frame that is the whole message; an error if more follows.
async fn single_frame(body: &mut impl FrameBody, frame: Bytes) -> Result<Bytes, Refusal> {
    while let Some(more) = next_data(body).await? {
        if more.has_remaining() {
            return Err(internal_error("more than one message in a unary call"));
        }
    }
    Ok(frame)
}

/// Copies a message out of its frame, into an allocation of exactly its size.
async fn copy_message(body: &mut impl FrameBody, frame: Bytes, length: usize) -> Result<Bytes, Refusal> {
    if frame.len() > length {
        return Err(internal_error("more than one message in a unary call"));
    }
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(&frame);
    single_frame(body, out.into()).await
}

/// Joins the frames, in an allocation that grows as they arrive and ends at exactly their size.
async fn read_chunks(
    body: &mut impl FrameBody,
    mut frame: Bytes,
    length: usize,
    pace: &BodyProgress,
    reserve: &mut impl MessageMemory,
) -> Result<Bytes, Refusal> {
    let mut buffer = reserve.begin_buffer(length)?;
    // Count the prefix.
    pace.record_arrival(1);
    loop {
        if buffer.len() + frame.len() > length {
            return Err(internal_error("more than one message in a unary call"));
        }
        buffer.push(&frame)?;
        pace.record_arrival(frame.len());
        match next_data(body).await? {
            Some(more) => frame = more,
            None => break,
        }
    }
    if buffer.len() < length {
        return Err(internal_error("the message is shorter than its length prefix"));
    }
    let (bytes, admission) = buffer.finish();
    reserve.finish(admission);
    Ok(bytes.into())
}

/// Reads the next data frame; `None` at the end of the body.
async fn next_data(body: &mut impl FrameBody) -> Result<Option<Bytes>, Refusal> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(bad_request(Code::Cancelled, format!("the call was interrupted: {error}"))),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads a message from frames that have all arrived: its bytes, and whether they are compressed.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_arrived(frames: Vec<Bytes>, max: usize) -> Result<(Bytes, bool), Refusal> {
    use futures_util::FutureExt as _;

    let frames = frames.into_iter().map(|frame| Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(frame)));
    let mut body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
    let read =
        async { read_message(&mut body, max, &BodyProgress::default(), &mut super::call::UnchargedMemory).await };
    let message = read.now_or_never().ok_or_else(|| internal_error("a body that is here is waited for"))??;
    Ok((message.bytes, message.compressed))
}
