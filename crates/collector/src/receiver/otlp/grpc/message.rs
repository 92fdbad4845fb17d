//! The message of a unary call: a prefix of five bytes, and so many more as it says.

use std::fmt::Display;

use bytes::{Buf, Bytes};
use http_body::Body;
use http_body_util::BodyExt;

use crate::{
    core::{Admission, Code, Refusal},
    receiver::{
        body::BodyBuffer,
        calls::{internal, refuse},
        timers::Pace,
    },
};

/// A message that arrived in one frame of at least this size stays where HTTP/2 read it. A smaller one is copied, as
/// a few bytes would otherwise hold on to a whole read buffer.
const STAYS: usize = 32 << 10;

/// What a message that stays in its read buffer may hold on to, as a multiple of its length. HTTP/2 reads a frame into
/// a buffer of the frame's size or of 64 KiB, whichever is larger.
pub(super) const HELD: usize = 2;

/// The frames of a call: a body of HTTP/2.
pub(super) trait Frames: Body<Data = Bytes, Error: Display> + Unpin {}

impl<B: Body<Data = Bytes, Error: Display> + Unpin> Frames for B {}

/// A message as it arrived.
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) compressed: bool,
    /// It is still in the buffer that it was read into: see [`HELD`].
    pub(super) in_place: bool,
}

/// Reads one message of at most `max` bytes. `reserve` is asked for its memory before anything is allocated for it.
pub(super) async fn read(
    body: &mut impl Frames,
    max: usize,
    pace: &Pace,
    reserve: &mut impl Reserve,
) -> Result<Message, Refusal> {
    let (prefix, frame) = prefix(body).await?;
    let [flag, length @ ..] = prefix;
    let length = u32::from_be_bytes(length) as usize;
    if length > max {
        let message = format!("grpc: received message larger than max ({length} vs. {max})");
        return Err(refuse(Code::ResourceExhausted, message));
    }
    let (bytes, in_place) = if frame.len() >= length {
        reserve.whole(length)?;
        let in_place = frame.len() == length && length >= STAYS;
        (if in_place { alone(body, frame).await? } else { copied(body, frame, length).await? }, in_place)
    } else {
        (gathered(body, frame, length, pace, reserve).await?, false)
    };
    Ok(Message { bytes, compressed: flag != 0, in_place })
}

/// Where the memory of a message comes from.
pub(super) trait Reserve {
    /// Reserves the memory of a message that is here as a whole.
    fn whole(&mut self, length: usize) -> Result<(), Refusal>;

    /// Makes a buffer for a message of which only a part is here.
    fn begin(&mut self, length: usize) -> Result<BodyBuffer, Refusal>;

    /// Takes over the memory of a message that has arrived.
    fn finish(&mut self, admission: Option<Admission>);
}

/// The prefix, and what came behind it in the same frame.
async fn prefix(body: &mut impl Frames) -> Result<([u8; 5], Bytes), Refusal> {
    let mut frame = first(body).await?;
    // Nearly always it is in one frame.
    if let Some(prefix) = frame.first_chunk().copied() {
        frame.advance(prefix.len());
        return Ok((prefix, frame));
    }
    let mut prefix = [0u8; 5];
    let mut missing = &mut prefix[..];
    while !missing.is_empty() {
        if !frame.has_remaining() {
            frame = first(body).await?;
        }
        let n = missing.len().min(frame.len());
        let (now, later) = std::mem::take(&mut missing).split_at_mut(n);
        frame.copy_to_slice(now);
        missing = later;
    }
    Ok((prefix, frame))
}

/// The next data of a body that must have some.
async fn first(body: &mut impl Frames) -> Result<Bytes, Refusal> {
    next(body).await?.ok_or_else(|| internal("the call ended before its message"))
}

/// A frame that is the whole message: nothing may follow.
async fn alone(body: &mut impl Frames, frame: Bytes) -> Result<Bytes, Refusal> {
    while let Some(more) = next(body).await? {
        if more.has_remaining() {
            return Err(internal("more than one message in a unary call"));
        }
    }
    Ok(frame)
}

/// A message that is in the frame, in an allocation of exactly its size.
async fn copied(body: &mut impl Frames, frame: Bytes, length: usize) -> Result<Bytes, Refusal> {
    if frame.len() > length {
        return Err(internal("more than one message in a unary call"));
    }
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(&frame);
    alone(body, out.into()).await
}

/// All frames together, in an allocation that grows as they arrive and is of exactly their size in the end.
async fn gathered(
    body: &mut impl Frames,
    mut frame: Bytes,
    length: usize,
    pace: &Pace,
    reserve: &mut impl Reserve,
) -> Result<Bytes, Refusal> {
    let mut buffer = reserve.begin(length)?;
    // The prefix.
    pace.advance(1);
    loop {
        if buffer.len() + frame.len() > length {
            return Err(internal("more than one message in a unary call"));
        }
        buffer.push(&frame)?;
        pace.advance(frame.len());
        match next(body).await? {
            Some(more) => frame = more,
            None => break,
        }
    }
    if buffer.len() < length {
        return Err(internal("the message is shorter than its prefix says"));
    }
    let (bytes, admission) = buffer.finish();
    reserve.finish(admission);
    Ok(bytes.into())
}

/// The next data of a body; `None` at its end.
async fn next(body: &mut impl Frames) -> Result<Option<Bytes>, Refusal> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(refuse(Code::Cancelled, format!("the call was cut short: {error}"))),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads a message of frames that are all here: its bytes, and whether they are compressed.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_arrived(frames: Vec<Bytes>, max: usize) -> Result<(Bytes, bool), Refusal> {
    use futures_util::FutureExt as _;

    let frames = frames.into_iter().map(|frame| Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(frame)));
    let mut body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
    let read = async { read(&mut body, max, &Pace::default(), &mut super::call::Uncharged).await };
    let message = read.now_or_never().ok_or_else(|| internal("a body that is here is waited for"))??;
    Ok((message.bytes, message.compressed))
}
