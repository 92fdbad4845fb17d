//! The messages of a gRPC stream: a prefix of five bytes, and as many more as it announces.

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{
    core::{Code, Refusal},
    receiver::grpc_calls::{bad_request, internal_error},
};

/// Reads the messages of a call, one after another.
pub(super) struct MessageReader<'b> {
    body: &'b mut Incoming,
    /// Received and not read yet.
    rest: Bytes,
}

/// The prefix of a message: flag and length.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessagePrefix {
    pub(super) compressed: bool,
    pub(super) length: usize,
}

impl<'b> MessageReader<'b> {
    pub(super) fn new(body: &'b mut Incoming) -> Self {
        Self { body, rest: Bytes::new() }
    }

    /// Waits for a message to begin; false at the end of the stream. Cancel-safe.
    pub(super) async fn wait_for_message(&mut self) -> Result<bool, Refusal> {
        while !self.rest.has_remaining() {
            match self.next_data().await? {
                Some(data) => self.rest = data,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Reads the prefix of the message that began.
    pub(super) async fn read_prefix(&mut self) -> Result<MessagePrefix, Refusal> {
        let mut prefix = [0; 5];
        self.read_exact(&mut prefix).await?;
        let [flag, length @ ..] = prefix;
        Ok(MessagePrefix { compressed: flag != 0, length: u32::from_be_bytes(length) as usize })
    }

    /// Takes the content of a message that has arrived completely.
    pub(super) fn take_buffered(&mut self, length: usize) -> Bytes {
        self.rest.split_to(length.min(self.rest.len()))
    }

    /// Whether the content of a message has arrived completely.
    pub(super) fn is_buffered(&self, length: usize) -> bool {
        self.rest.len() >= length
    }

    /// Reads the next piece of a message of which `missing` bytes are missing. Cancel-safe.
    pub(super) async fn next_chunk(&mut self, missing: usize) -> Result<Bytes, Refusal> {
        if !self.wait_for_message().await? {
            return Err(internal_error("the stream ended inside a message"));
        }
        Ok(self.take_buffered(missing))
    }

    async fn read_exact(&mut self, mut missing: &mut [u8]) -> Result<(), Refusal> {
        while !missing.is_empty() {
            if !self.wait_for_message().await? {
                return Err(internal_error("the stream ended inside a message"));
            }
            let count = missing.len().min(self.rest.len());
            let (now, later) = missing.split_at_mut(count);
            self.rest.copy_to_slice(now);
            missing = later;
        }
        Ok(())
    }

    async fn next_data(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(bad_request(Code::Cancelled, format!("the call was interrupted: {error}")));
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}
