//! Discards the rest of a request that was answered before all of it had arrived.
//!
//! Many clients read a response only after they have written the whole request. If the connection or stream is
//! closed while they write, they report that and not the response. So the rest of the request is read and
//! thrown away after the response was sent.
//!
//! *Guaranteed*: the response does not wait for the discard. No more is read than the size limit of a request,
//! and for no longer than [`DISCARD_TIMEOUT`]; then the connection or stream is closed. *Assumed*: the protocol
//! bounds the unfinished requests of a connection, as HTTP/1.1 (one) and HTTP/2 (`max_concurrent_streams`) do.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};

/// Time that a refused sender has to finish its request.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads and drops the rest of a body, up to `max` bytes, in a task of its own.
pub(super) fn discard_rest(body: Incoming, max: u64) {
    if !body.is_end_stream() {
        tokio::spawn(tokio::time::timeout(DISCARD_TIMEOUT, discard(body, max)));
    }
}

async fn discard(mut body: Incoming, mut left: u64) {
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        let Some(rest) = left.checked_sub(length) else { return };
        left = rest;
    }
}
