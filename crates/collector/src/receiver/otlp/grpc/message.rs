//! The message of a unary call: a prefix of five bytes, and so many more as it says.

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{
    core::{Code, Refusal},
    receiver::calls::{internal, refuse},
};

/// A message that arrived in one frame of at least this size stays where HTTP/2 read it. A smaller one is copied, as
/// a few bytes would otherwise hold on to a whole read buffer.
const STAYS: usize = 32 << 10;

/// What a message that stays in its read buffer may hold on to, as a multiple of its length. HTTP/2 reads a frame into
/// a buffer of the frame's size or of 64 KiB, whichever is larger.
pub(super) const HELD: usize = 2;

/// A message as it arrived.
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) compressed: bool,
    /// It is still in the buffer that it was read into: see [`HELD`].
    pub(super) in_place: bool,
}

/// Reads one message of at most `max` bytes. `reserve` is asked for its length before anything is allocated for it.
pub(super) async fn read(
    body: &mut Incoming,
    max: usize,
    reserve: impl FnOnce(usize) -> Result<(), Refusal>,
) -> Result<Message, Refusal> {
    let (prefix, frame) = prefix(body).await?;
    let [flag, length @ ..] = prefix;
    let length = u32::from_be_bytes(length) as usize;
    if length > max {
        let message = format!("grpc: received message larger than max ({length} vs. {max})");
        return Err(refuse(Code::ResourceExhausted, message));
    }
    reserve(length)?;
    let in_place = frame.len() == length && length >= STAYS;
    let bytes = if in_place { alone(body, frame).await? } else { gathered(body, frame, length).await? };
    Ok(Message { bytes, compressed: flag != 0, in_place })
}

/// The prefix, and what came behind it in the same frame.
async fn prefix(body: &mut Incoming) -> Result<([u8; 5], Bytes), Refusal> {
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
async fn first(body: &mut Incoming) -> Result<Bytes, Refusal> {
    next(body).await?.ok_or_else(|| internal("the call ended before its message"))
}

/// A frame that is the whole message: nothing may follow.
async fn alone(body: &mut Incoming, frame: Bytes) -> Result<Bytes, Refusal> {
    while let Some(more) = next(body).await? {
        if more.has_remaining() {
            return Err(internal("more than one message in a unary call"));
        }
    }
    Ok(frame)
}

/// All frames together, in an allocation of exactly their size.
async fn gathered(body: &mut Incoming, mut frame: Bytes, length: usize) -> Result<Bytes, Refusal> {
    let mut out = Vec::with_capacity(length);
    loop {
        if out.len() + frame.len() > length {
            return Err(internal("more than one message in a unary call"));
        }
        out.extend_from_slice(&frame);
        match next(body).await? {
            Some(more) => frame = more,
            None => break,
        }
    }
    if out.len() < length {
        return Err(internal("the message is shorter than its prefix says"));
    }
    Ok(out.into())
}

/// The next data of a body; `None` at its end.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Refusal> {
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
