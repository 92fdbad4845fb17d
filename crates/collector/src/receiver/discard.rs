//! What is left of a request that was answered before all of it had arrived.
//!
//! Many clients read an answer only after they have written the whole request. Where a connection or a stream is closed while
//! they write, they report that and not the answer. So what is left is read and thrown away after the answer was given.
//!
//! *Guarantees.* The answer does not wait for it. No more is read than a request may have, and for no longer than
//! [`DISCARD_LIMIT`]; the connection or the stream is closed then. *Assumes* that a protocol bounds the requests of a
//! connection that have not ended, as HTTP/1.1 (one) and HTTP/2 (`max_concurrent_streams`) do.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};

/// How long a refused sender may take to finish its request.
const DISCARD_LIMIT: Duration = Duration::from_secs(5);

/// Reads the rest of a body, up to `max` bytes, in a task of its own.
pub(super) fn discard_rest(body: Incoming, max: u64) {
    if !body.is_end_stream() {
        tokio::spawn(tokio::time::timeout(DISCARD_LIMIT, discard(body, max)));
    }
}

async fn discard(mut body: Incoming, mut left: u64) {
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        let Some(rest) = left.checked_sub(length) else { return };
        left = rest;
    }
}
