//! Reads the body of a request, within limits of size and time.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::api::StatusError;

/// The time limit of kube-apiserver, so that slow senders do not hold connections.
const BODY_READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the whole body.
///
/// # Errors
/// 413 if it is longer than the limit, which is detected before all of it was received; 504 if it takes too
/// long.
pub async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, StatusError>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match timeout(BODY_READ_TIMEOUT, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {limit}");
            Err(StatusError::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message))
        }
        Ok(Err(error)) => Err(StatusError::bad_request(format!("failed to read the request body: {error}"))),
        Err(_) => Err(StatusError::timeout()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::http::Body;

    #[tokio::test]
    async fn a_body_is_read_whole_unless_it_is_too_long() {
        let pieces = || Body::from_chunks(["ab", "cd"].map(Bytes::from));
        assert_eq!(read_body(pieces(), 4).await.unwrap(), "abcd");
        assert_eq!(read_body(pieces(), 3).await.unwrap_err().code, 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let (sender, receiver) = mpsc::channel(1);
        sender.send(Bytes::from("a")).await.unwrap();
        let status = read_body(Body::from_receiver(receiver), 10).await.unwrap_err();
        assert_eq!((status.code, status.reason), (504, "Timeout"));
        drop(sender);
    }
}
