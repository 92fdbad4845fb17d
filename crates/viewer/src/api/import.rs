//! Import of traces from a file.
//!
//! Guaranteed: beside the file itself, one of its documents at a time is in memory, and of that one piece at a
//! time is parsed. A file is read twice, so that a file with an error anywhere leaves nothing in the store.

use std::{fmt, num::NonZeroUsize, time::Duration};

use axum::{
    body::{Body, Bytes, to_bytes},
    extract,
    response::Response,
};
use http::{HeaderMap, StatusCode, header};
use kubewake_otlp::{Signal, SplitLimit, json::decode, scan, split};
use serde::{
    Deserializer, Serialize,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{error_response, json_response, run_blocking};
use crate::{
    serve::ViewerState,
    store::{AddedSpans, StoreWriter, TraceId},
};

/// The largest file. Its spans take memory of the store in addition.
const MAX_FILE_BYTES: usize = 64 << 20;
/// The largest piece that is parsed at once. The index of a span takes up to thirty times the bytes of the
/// smallest one.
const MAX_PIECE_BYTES: NonZeroUsize = NonZeroUsize::new(256 << 10).unwrap();
/// How long an upload may take. Other imports wait for it.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct ImportJson {
    /// Traces of the file that are in the store now.
    traces: Vec<TraceId>,
    spans: usize,
    /// Spans that the store rejects, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<RejectedJson>,
}

#[derive(Serialize)]
struct RejectedJson {
    spans: u64,
    message: String,
}

pub(crate) async fn import(
    extract::State(state): extract::State<ViewerState>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    // A cross-site form cannot send this media type without a CORS preflight.
    if !is_json(&headers) {
        return error_response(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported media type: send OTLP as JSON with Content-Type: application/json",
        );
    }
    let _turn = state.importing.clone().acquire_owned().await;
    let body = match read_file(body, UPLOAD_TIMEOUT).await {
        Ok(body) => body,
        Err((status, message)) => return error_response(status, message),
    };
    run_blocking(move || match store_requests(&body, &state.keeper) {
        Ok(mut all) => {
            // Some traces were refused as a whole, or evicted in favour of others of the file.
            all.traces.retain(|id| state.store.trace(*id).is_some());
            let rejected = Some(all.rejected).filter(|it| it.spans() > 0);
            let rejected = rejected.map(|it| RejectedJson { spans: it.spans(), message: it.to_string() });
            json_response(StatusCode::OK, &ImportJson { traces: all.traces, spans: all.spans, rejected })
        }
        Err(message) => error_response(StatusCode::BAD_REQUEST, &message),
    })
    .await
}

/// Reads the body within the time limit.
async fn read_file(body: Body, patience: Duration) -> Result<Bytes, (StatusCode, &'static str)> {
    match timeout(patience, to_bytes(body, MAX_FILE_BYTES)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => {
            let message = "the upload was interrupted, or the file is larger than 64 MiB: import it in parts";
            Err((StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the upload took longer than a minute: import the file in parts")),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Stores the requests of a file, provided that all of them can be decoded.
fn store_requests(body: &[u8], keeper: &StoreWriter) -> Result<AddedSpans, String> {
    for_each_request(body, |_| ())?;
    let mut all = AddedSpans::default();
    for_each_request(body, |request| {
        for piece in split(Signal::Traces, &request.into(), SplitLimit::Bytes(MAX_PIECE_BYTES)) {
            let added = keeper.write_request(&piece.bytes);
            all.spans += added.spans;
            all.rejected += added.rejected;
            all.traces.extend(added.traces);
        }
        all.traces.sort_unstable();
        all.traces.dedup();
    })?;
    Ok(all)
}

/// Calls `each` for every request in a file: a single document, concatenated documents, or a JSON array.
pub(crate) fn for_each_request(body: &[u8], mut each: impl FnMut(Vec<u8>)) -> Result<(), String> {
    let mut number = 0;
    let mut one = |document: &RawValue| {
        number += 1;
        parse_request(number, document.get()).map(&mut each)
    };
    let no_json = |error: serde_json::Error| format!("the file is not valid JSON: {error}");
    if body.trim_ascii_start().first() == Some(&b'[') {
        let mut problem = None;
        let mut reader = serde_json::Deserializer::from_slice(body);
        let list = DocumentList { each: &mut one, problem: &mut problem };
        let read = reader.deserialize_seq(list).and_then(|()| reader.end());
        match problem {
            Some(problem) => return Err(problem),
            None => read.map_err(no_json)?,
        }
    } else {
        for document in serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>() {
            one(document.map_err(no_json)?)?;
        }
    }
    if number == 0 { Err("the file is empty".to_owned()) } else { Ok(()) }
}

/// Reads a JSON array without holding its items.
struct DocumentList<'a> {
    each: &'a mut dyn FnMut(&RawValue) -> Result<(), String>,
    problem: &'a mut Option<String>,
}

impl<'de> Visitor<'de> for DocumentList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of documents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(document) = list.next_element::<&RawValue>()? {
            if let Err(problem) = (self.each)(document) {
                *self.problem = Some(problem);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

fn parse_request(number: usize, document: &str) -> Result<Vec<u8>, String> {
    let bytes = decode(Signal::Traces, document.as_bytes()).map_err(|error| format!("document {number}: {error}"))?;
    let summary = scan(Signal::Traces, &bytes).map_err(|error| format!("document {number}: {error}"))?;
    if summary.items == 0 {
        return Err(format!("document {number} contains no spans: OTLP JSON has them in resourceSpans"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::{StoreLimits, TraceStore};

    fn requests(body: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut all = Vec::new();
        for_each_request(body, |request| all.push(request)).map(|()| all)
    }

    const ONE: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331"}]}]}]}"#;

    #[test]
    fn a_file_holds_one_request_or_many() {
        let count = |text: &str| requests(text.as_bytes()).map(|all| all.len());
        assert_eq!(count(ONE), Ok(1));
        assert_eq!(count(&format!("{ONE}\n{ONE}\n")), Ok(2));
        assert_eq!(count(&format!(" [{ONE}, {ONE}, {ONE}]")), Ok(3));
    }

    #[test]
    fn what_is_none_is_refused_in_words() {
        let refusal = |text: &str| requests(text.as_bytes()).unwrap_err();
        assert_eq!(refusal(""), "the file is empty");
        assert!(refusal("{").starts_with("the file is not valid JSON"));
        assert!(refusal(r#"{"data":[]}"#).contains("document 1 contains no spans"));
        assert!(refusal(&format!("{ONE}\n{{\"resourceSpans\":7}}")).starts_with("document 2:"));
        assert!(requests(b"\xff\xfe").is_err());
        assert!(refusal(&format!("[{ONE}, {{\"resourceSpans\":7}}]")).starts_with("document 2:"));
        assert!(refusal(&format!("[{ONE}, {ONE}")).starts_with("the file is not valid JSON"));
        assert!(refusal(&format!("[{ONE}] {ONE}")).starts_with("the file is not valid JSON"));
        assert_eq!(refusal("[]"), "the file is empty");
    }

    #[test]
    fn nothing_of_a_file_that_is_wrong_at_its_end_is_kept() {
        let store = Arc::new(TraceStore::new(StoreLimits::default()));
        let keeper = StoreWriter::in_memory(Arc::clone(&store), || 1);
        assert!(store_requests(format!("{ONE}\n{ONE}\n{{").as_bytes(), &keeper).is_err());
        let id = "0af7651916cd43dd8448eb211c80319c".parse().unwrap();
        assert!(store.trace(id).is_none());
        assert_eq!(store_requests(format!("{ONE}\n{ONE}").as_bytes(), &keeper).unwrap().traces, [id]);
        assert!(store.trace(id).is_some());
    }

    #[tokio::test]
    async fn a_file_that_never_ends_is_not_waited_for() {
        let endless = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        let (status, message) = read_file(endless, Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
        assert!(message.contains("a minute"), "{message}");
        assert_eq!(read_file(Body::from(ONE), UPLOAD_TIMEOUT).await.unwrap(), ONE.as_bytes());
    }
}
