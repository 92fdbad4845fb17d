//! The messages of a stream: each a prefix of five bytes, and so many more as it says.

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{
    core::{Code, Refusal},
    receiver::calls::{internal, refuse},
};

/// The messages of a call, one after another.
pub(super) struct Messages<'b> {
    body: &'b mut Incoming,
    /// What was received and not read yet.
    rest: Bytes,
}

/// What stands in front of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    pub(super) compressed: bool,
    pub(super) length: usize,
}

impl<'b> Messages<'b> {
    pub(super) fn new(body: &'b mut Incoming) -> Self {
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

    /// The content of a message that is here as a whole.
    pub(super) fn whole(&mut self, length: usize) -> Bytes {
        self.rest.split_to(length.min(self.rest.len()))
    }

    /// Whether the content of a message is here as a whole.
    pub(super) fn is_whole(&self, length: usize) -> bool {
        self.rest.len() >= length
    }

    /// The next piece of a message of which `missing` bytes are missing. To drop it loses nothing: it can be asked again.
    pub(super) async fn piece(&mut self, missing: usize) -> Result<Bytes, Refusal> {
        if !self.begin().await? {
            return Err(internal("the stream ended inside a message"));
        }
        Ok(self.whole(missing))
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
