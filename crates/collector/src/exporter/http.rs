//! `http`: log records as JSON documents to any HTTP server.
//!
//! *Guarantees.* The statuses 200 to 205 are success. Other 4xx than 408 and 429 refuse the records for good; a request
//! that is too large (413) is halved. Everything else leads to another attempt of what is not settled yet. Members of
//! a document that describe where a record is from are never taken from the record.
//!
//! *Does not* recognise documents that a server has already: a request whose response is lost is sent again.

mod document;
mod push_body;
mod record_list;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    response::Parts,
};
use kubewake_config::model::{HttpExporter, HttpFormat, HttpMethod};

use self::{document::DocumentStyle, push_body::PushBody, record_list::RecordList};
use super::batch_delivery::{BatchDelivery, Continuation};
use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{BackendStatus, Batch, Exporter, RejectReason, SendError, SendFuture, SendSuccess, heavy_work},
    extension::ClientAuth,
    net::{
        compress::{BodyEncoder, RequestBody},
        http_destination::HttpDestination,
        http_error,
        request::BoundedResponse,
    },
};

const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const JSON_LINES_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-ndjson");

pub(crate) fn prepare(settings: &HttpExporter, context: &ExporterContext<'_>) -> Result<PreparedExporter, BuildError> {
    build(settings, context.auth.clone()).map(PreparedExporter::new)
}

fn build(settings: &HttpExporter, auth: Option<Arc<dyn ClientAuth>>) -> Result<ExporterParts, BuildError> {
    let encoder = BodyEncoder::http(settings.http.compression);
    let mut headers = Vec::new();
    if !settings.http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push((CONTENT_TYPE, content_type(settings.format)));
    }
    if let Some(encoder) = &encoder {
        headers.push((CONTENT_ENCODING, HeaderValue::from_static(encoder.name())));
    }
    let destination = HttpDestination::new(&settings.url, &settings.http, headers, auth)?;
    let exporter = HttpPush {
        destination: destination.with_timeout(settings.http.timeout).with_method(match settings.method {
            HttpMethod::Post => Method::POST,
            HttpMethod::Put => Method::PUT,
        }),
        style: Arc::new(DocumentStyle::new(settings)),
        encoder,
        max_request_bytes: AtomicUsize::new(settings.max_request_bytes as usize),
    };
    Ok(ExporterParts {
        destination: exporter.destination.labels(),
        exporter: Arc::new(exporter),
        // Each request of an attempt has the time limit, because an attempt may take several.
        timeout: None,
        retry: settings.http.retry.clone(),
        queue: settings.http.queue.clone(),
    })
}

fn content_type(format: HttpFormat) -> HeaderValue {
    match format {
        HttpFormat::Json => JSON_CONTENT_TYPE,
        HttpFormat::JsonLines => JSON_LINES_CONTENT_TYPE,
    }
}

struct HttpPush {
    destination: HttpDestination,
    style: Arc<DocumentStyle>,
    encoder: Option<BodyEncoder>,
    /// The size of a request before compression: as configured, or less since one was too large.
    max_request_bytes: AtomicUsize,
}

impl HttpPush {
    async fn export(&self, batch: &Batch) -> Result<SendSuccess, SendError> {
        let owned = batch.clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let list = Arc::new(heavy_work::run(batch.bytes(), move || RecordList::make(owned, now)).await?);
        let mut delivery = BatchDelivery::new(batch);
        let mut start = 0;
        while start < list.records.len() {
            let body = match self.encode(&list, start).await {
                Ok(body) => body,
                Err(error) => {
                    delivery.retry_later(error);
                    break;
                }
            };
            let records = list.records.get(start..body.end).unwrap_or_default();
            let numbers = records.iter().map(|record| record.number as usize);
            match self.push(&body).await {
                Ok(()) => delivery.store(numbers, 0),
                Err(error) if error.retryable => {
                    // The records behind are not sent before these.
                    let _: Continuation = delivery.retry_later(error);
                    break;
                }
                Err(error) if is_too_large(&error) && records.len() > 1 => {
                    self.max_request_bytes.fetch_min(body.plain.len().div_ceil(2), Ordering::Relaxed);
                    continue;
                }
                Err(error) => delivery.refuse(numbers, refusal_reason(&error), error),
            }
            start = body.end;
        }
        delivery.into_result(batch)
    }

    async fn encode(&self, list: &Arc<RecordList>, start: usize) -> Result<PushBody, SendError> {
        let max_bytes = self.max_request_bytes.load(Ordering::Relaxed);
        let list = list.clone();
        let style = self.style.clone();
        let expected = max_bytes.min(list.batch.bytes());
        heavy_work::run(expected, move || PushBody::encode(&list, start, max_bytes, &style)).await
    }

    async fn push(&self, body: &PushBody) -> Result<(), SendError> {
        let sent: Bytes = match &self.encoder {
            None => body.plain.clone(),
            Some(encoder) => match encoder.encode(std::iter::once(&body.plain), 0).await {
                Ok(mut packed) => {
                    // The buffer of a small body is far larger than it, and stays until the server has answered.
                    packed.shrink_to_fit();
                    packed.into()
                }
                Err(error) => {
                    return Err(SendError::malformed(format!("{} compression failed: {error}", encoder.name())));
                }
            },
        };
        self.destination.send(&HeaderMap::new(), || RequestBody::from(sent.clone()), interpret).await
    }
}

impl Exporter for HttpPush {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(self.export(batch))
    }
}

fn interpret(head: &Parts, answer: &BoundedResponse) -> Result<(), SendError> {
    let status = head.status.as_u16();
    if (200..=205).contains(&status) {
        return Ok(());
    }
    let is_refusal = head.status.is_client_error() && !matches!(status, 408 | 429);
    Err(http_error::status_error(head, &http_error::message_text(answer), !is_refusal))
}

fn is_too_large(error: &SendError) -> bool {
    error.backend_status == Some(BackendStatus::Http(StatusCode::PAYLOAD_TOO_LARGE))
}

fn refusal_reason(error: &SendError) -> RejectReason {
    if !error.code.blames_data() {
        RejectReason::Target
    } else if is_too_large(error) {
        RejectReason::TooLarge
    } else {
        RejectReason::Other
    }
}
