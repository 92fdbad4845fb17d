//! The messages of a stream: each a prefix of five bytes, and so many more as it says.

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{
    core::{Code, Refusal},
    receiver::calls::{internal, refuse},
};

/// The messages of a call, one after another.
pub(super) struct Messages {
    body: Incoming,
    /// What was received and not read yet.
    rest: Bytes,
}

/// What stands in front of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    pub(super) compressed: bool,
    pub(super) length: usize,
}

impl Messages {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, rest: Bytes::new() }
    }

    /// Waits for a message to begin; none if the client has said all. To drop it loses nothing: it can be asked again.
    pub(super) async fn begin(&mut self) -> Result<bool, Refusal> {
        while !self.rest.has_remaining() {
            match self.next().await? {
                Some(data) => self.rest = data,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The prefix of the message that began.
    pub(super) async fn prefix(&mut self) -> Result<Prefix, Refusal> {
        let mut prefix = [0; 5];
        self.fill(&mut prefix).await?;
        let [flag, length @ ..] = prefix;
        Ok(Prefix { compressed: flag != 0, length: u32::from_be_bytes(length) as usize })
    }

    /// The content of a message, in an allocation of exactly its size, which was reserved.
    pub(super) async fn content(&mut self, length: usize) -> Result<Vec<u8>, Refusal> {
        let mut content = vec![0; length];
        self.fill(&mut content).await?;
        Ok(content)
    }

    async fn fill(&mut self, mut missing: &mut [u8]) -> Result<(), Refusal> {
        while !missing.is_empty() {
            if !self.begin().await? {
                return Err(internal("the stream ended inside a message"));
            }
            let count = missing.len().min(self.rest.len());
            let (now, later) = missing.split_at_mut(count);
            self.rest.copy_to_slice(now);
            missing = later;
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            match self.body.frame().await {
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
}
