//! A small client for the JSON of collectors and viewers, and for their event streams.
//!
//! *Guaranteed*: a response takes bounded time and memory. *Not done*: TLS, redirects, proxies. Servers are in
//! the same cluster or on the same machine.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, StatusCode, header};
use http_body_util::Full;
use kubewake_runtime::http_client::{HttpClient, HttpClientError, OpenResponse};
use serde::de::DeserializeOwned;

/// A trace of ten thousand spans with all attributes takes some 20 MiB.
const MAX_RESPONSE_BYTES: usize = 256 << 20;
/// An event is a span, or a summary.
const MAX_EVENT_BYTES: usize = 8 << 20;

#[derive(Clone, Debug)]
pub(crate) struct JsonHttpClient(HttpClient);

#[derive(Debug)]
pub(crate) enum JsonHttpError {
    Timeout,
    /// No server listens there, or it does not speak HTTP.
    Unreachable(String),
    /// An unexpected status, with the beginning of the body.
    Status(StatusCode, String),
    /// The response was cut off, is too long, or cannot be decoded.
    InvalidResponse(String),
}

impl std::fmt::Display for JsonHttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Timeout => write!(f, "timed out while waiting for a response"),
            Self::Unreachable(why) => write!(f, "failed to connect: {why}"),
            Self::Status(status, said) if said.is_empty() => write!(f, "the server responded with {status}"),
            Self::Status(status, said) => write!(f, "the server responded with {status}: {said}"),
            Self::InvalidResponse(why) => write!(f, "failed to read the response: {why}"),
        }
    }
}

impl std::error::Error for JsonHttpError {}

impl JsonHttpClient {
    /// The timeout applies to each response.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self(HttpClient { timeout, max_response_bytes: MAX_RESPONSE_BYTES })
    }

    /// Gets and decodes JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, JsonHttpError> {
        let request = Request::get(url).header(header::ACCEPT, "application/json").body(Full::default());
        let body = self.0.send(request).await?;
        serde_json::from_slice(&body).map_err(|error| JsonHttpError::InvalidResponse(error.to_string()))
    }

    /// Posts JSON, and returns the body of the response.
    pub(crate) async fn post(&self, url: &str, body: Bytes) -> Result<Bytes, JsonHttpError> {
        let request = Request::post(url).header(header::CONTENT_TYPE, "application/json").body(Full::new(body));
        Ok(self.0.send(request).await?)
    }

    /// Opens a stream of server-sent events.
    pub(crate) async fn events(&self, url: &str) -> Result<EventStream, JsonHttpError> {
        let request = Request::get(url).header(header::ACCEPT, "text/event-stream").body(Full::default());
        let response = self.0.open_stream(request).await?;
        Ok(EventStream { response, read: BytesMut::new() })
    }
}

impl From<HttpClientError> for JsonHttpError {
    fn from(error: HttpClientError) -> Self {
        match error {
            HttpClientError::Timeout => Self::Timeout,
            HttpClientError::Status { status, body } => Self::Status(status, error_message(&body)),
            HttpClientError::Read(error) => Self::InvalidResponse(error.to_string()),
            HttpClientError::Request(reason) => Self::Unreachable(reason),
            HttpClientError::Connect(error) => Self::Unreachable(error.to_string()),
            HttpClientError::Http(error) => Self::Unreachable(innermost_error(&error)),
        }
    }
}

/// The innermost cause is the most specific.
fn innermost_error(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// The message of an error response: its `error` or `message`, or its beginning.
fn error_message(said: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(said).ok();
    let field = |name: &str| json.as_ref()?.get(name)?.as_str().map(str::to_owned);
    let text =
        field("error").or_else(|| field("message")).unwrap_or_else(|| String::from_utf8_lossy(said).into_owned());
    text.trim().chars().take(300).collect()
}

#[derive(Debug)]
pub(crate) struct EventStream {
    response: OpenResponse,
    read: BytesMut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerSentEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl EventStream {
    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerSentEvent>, JsonHttpError> {
        loop {
            if let Some(event) = take_event(&mut self.read) {
                return Ok(Some(event));
            }
            if self.read.len() > MAX_EVENT_BYTES {
                return Err(JsonHttpError::InvalidResponse("an event exceeds the maximum length".to_owned()));
            }
            let Some(chunk) = self.response.next_chunk().await else { return Ok(None) };
            let chunk = chunk.map_err(|error| JsonHttpError::InvalidResponse(error.to_string()))?;
            self.read.extend_from_slice(&chunk);
        }
    }
}

/// Takes the first complete event. Comments, which keep the connection alive, are skipped.
fn take_event(read: &mut BytesMut) -> Option<ServerSentEvent> {
    loop {
        let end = read.windows(2).position(|pair| pair == b"\n\n")?;
        let block = read.split_to(end + 2);
        let text = String::from_utf8_lossy(&block);
        let mut event = ServerSentEvent { name: "message".to_owned(), data: String::new() };
        let mut has_data = false;
        for line in text.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut event.name),
                "data" => {
                    if has_data {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                    has_data = true;
                }
                _ => {}
            }
        }
        if has_data {
            return Some(event);
        }
    }
}

pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    async fn somebody(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        format!("http://{address}/x")
    }

    #[test]
    fn events_are_taken_one_by_one_and_comments_passed_over() {
        let mut read = BytesMut::from(&b": hello\n\nevent: span\ndata: {\"a\":1}\n\ndata:x\ndata: y\n\nevent: sp"[..]);
        assert_eq!(take_event(&mut read), Some(ServerSentEvent { name: "span".into(), data: "{\"a\":1}".into() }));
        assert_eq!(take_event(&mut read), Some(ServerSentEvent { name: "message".into(), data: "x\ny".into() }));
        assert_eq!(take_event(&mut read), None);
    }

    #[test]
    fn whatever_is_asked_for_is_one_part_of_a_url() {
        assert_eq!(percent_encode("a b/c?d=é"), "a%20b%2Fc%3Fd%3D%C3%A9");
    }

    #[tokio::test]
    async fn what_went_wrong_is_said_in_words() {
        let web = JsonHttpClient::new(Duration::from_secs(10));
        let url = somebody("HTTP/1.1 404 Not Found\r\ncontent-length: 26\r\n\r\n{\"error\": \"no such trace\"}").await;
        let error = web.get::<serde_json::Value>(&url).await.unwrap_err();
        assert_eq!(error.to_string(), "the server responded with 404 Not Found: no such trace");
        let url = somebody("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno").await;
        assert!(matches!(web.get::<serde_json::Value>(&url).await, Err(JsonHttpError::InvalidResponse(_))));
        let closed = { TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap() };
        let error = web.get::<serde_json::Value>(&format!("http://{closed}/")).await.unwrap_err();
        assert!(error.to_string().contains("refused"), "{error}");
    }

    #[tokio::test]
    async fn a_stream_is_read_to_its_end() {
        let web = JsonHttpClient::new(Duration::from_secs(10));
        let url = somebody("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nevent: span\ndata: 1\n\n").await;
        let mut events = web.events(&url).await.unwrap();
        assert_eq!(events.next().await.unwrap().unwrap().data, "1");
        assert!(events.next().await.unwrap().is_none());
    }
}
