//! `otlphttp`, `otlp_http`: OTLP over HTTP, in protobuf or JSON.
//!
//! *Guaranteed*: any 2xx is success; a `partial_success` in the body is reported and never leads to a retry.
//! Only 429, 502, 503 and 504 are retryable, by the specification. [`HttpDestination`] guarantees the rest.

mod response;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use kubewake_config::model::{BodyEncoding, OtlpHttpExporter};
use kubewake_otlp::{
    Signal,
    json::{self, EncodeError},
};

use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{Batch, Charge, Code, ErrorClass, Exporter, SendError, SendFuture, SendSuccess, WorkMemory, heavy_work},
    extension::ClientAuth,
    net::{
        compress::{BodyEncoder, RequestBody},
        http_destination::HttpDestination,
    },
};

const PROTOBUF_CONTENT_TYPE: &str = "application/x-protobuf";
const JSON_CONTENT_TYPE: &str = "application/json";

pub(crate) fn prepare(
    settings: &OtlpHttpExporter,
    context: &ExporterContext<'_>,
) -> Result<PreparedExporter, BuildError> {
    build(settings, context.pipeline.signal, context.auth.clone()).map(PreparedExporter::new)
}

/// Builds the exporter for one signal.
pub(crate) fn build(
    settings: &OtlpHttpExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<ExporterParts, BuildError> {
    let text = match signal {
        Signal::Traces => &settings.traces_url,
        Signal::Metrics => &settings.metrics_url,
        Signal::Logs => &settings.logs_url,
    };
    let text = text
        .as_ref()
        .ok_or_else(|| BuildError(format!("no URL for {signal}: set endpoint or {}_endpoint", signal.name())))?;
    let encoder = BodyEncoder::http(settings.http.compression);
    let content_type = match settings.encoding {
        BodyEncoding::Proto => PROTOBUF_CONTENT_TYPE,
        BodyEncoding::Json => JSON_CONTENT_TYPE,
    };
    let mut headers = vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))];
    if let Some(encoder) = &encoder {
        headers.push((CONTENT_ENCODING, HeaderValue::from_static(encoder.name())));
    }
    let destination = HttpDestination::new(text, &settings.http, headers, auth)?;
    Ok(ExporterParts {
        destination: destination.labels(),
        exporter: Arc::new(OtlpHttp { destination, encoding: settings.encoding, encoder }),
        timeout: settings.http.timeout,
        retry: settings.http.retry.clone(),
        queue: settings.http.queue.clone(),
    })
}

struct OtlpHttp {
    destination: HttpDestination,
    encoding: BodyEncoding,
    encoder: Option<BodyEncoder>,
}

impl OtlpHttp {
    async fn export(&self, batch: &Batch) -> Result<SendSuccess, SendError> {
        // The charge is held as long as the body.
        let (made, _charge) = self.encode_body(batch).await?;
        let body = || request_body(batch, made.as_ref());
        self.destination.send(&HeaderMap::new(), body, response::send_result).await
    }

    /// The encoded body with its charge; `None` if the requests are sent as they are.
    async fn encode_body(&self, batch: &Batch) -> Result<(Option<Bytes>, Option<Charge>), SendError> {
        let (json, charge) = match self.encoding {
            BodyEncoding::Proto => (None, None),
            BodyEncoding::Json => {
                let owned = batch.clone();
                let (json, charge) = heavy_work::run(batch.bytes(), move || encode_json(&owned)).await?;
                (Some(json), charge)
            }
        };
        let Some(encoder) = &self.encoder else { return Ok((json, charge)) };
        let packed = match &json {
            Some(json) => encoder.encode(std::iter::once(json), 0).await,
            None => encoder.encode(batch.parts().iter().map(|part| &part.bytes), 0).await,
        };
        match packed {
            Ok(packed) => Ok((Some(packed.into()), charge)),
            Err(error) => Err(local_error(Code::Internal, format!("{} compression failed: {error}", encoder.name()))),
        }
    }
}

impl Exporter for OtlpHttp {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(self.export(batch))
    }
}

fn request_body(batch: &Batch, made: Option<&Bytes>) -> RequestBody {
    match made {
        Some(made) => made.clone().into(),
        None => RequestBody::new(batch.parts().iter().map(|part| part.bytes.clone()).collect()),
    }
}

/// One document for the whole batch: JSON cannot be joined by concatenation. It may be many times as long as
/// the batch, so that it is charged.
fn encode_json(batch: &Batch) -> Result<(Bytes, Option<Charge>), SendError> {
    let mut out = Vec::new();
    let Some(mut memory) = WorkMemory::for_batch(batch) else { return Ok((Bytes::new(), None)) };
    let encoded = match batch.parts() {
        [part] => json::encode_within(batch.signal(), &part.bytes, &mut out, &mut memory),
        parts => {
            let mut joined = Vec::with_capacity(batch.bytes());
            parts.iter().for_each(|part| joined.extend_from_slice(&part.bytes));
            json::encode_within(batch.signal(), &joined, &mut out, &mut memory)
        }
    };
    encoded.map_err(|error| match error {
        EncodeError::NoMemory => memory.send_error(),
        error => local_error(Code::InvalidArgument, format!("failed to encode the batch as JSON: {error}")),
    })?;
    Ok((out.into(), memory.into_charge()))
}

fn local_error(code: Code, message: String) -> SendError {
    SendError { code, class: ErrorClass::Local, retryable: false, ..SendError::connection(message) }
}
