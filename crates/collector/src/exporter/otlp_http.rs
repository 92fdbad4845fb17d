//! `otlphttp`, `otlp_http`: OTLP over HTTP, in protobuf or JSON.
//!
//! *Guaranteed*: any 2xx is success; a `partial_success` in the body is reported and never leads to a retry.
//! Only 429, 502, 503 and 504 are retryable, by the specification. Redirects are not followed: a request with
//! credentials goes where the configuration says and nowhere else. An error names the URL without its query,
//! and never a header.

mod destination_url;
mod response;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request,
    header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT},
};
use kubewake_config::model::{BodyEncoding, OtlpHttpExporter};
use kubewake_otlp::{
    Signal,
    json::{self, EncodeError},
};

use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{
        BackendStatus, Batch, Charge, Code, DestinationLabels, ErrorClass, Exporter, SendError, SendFuture,
        SendSuccess, TlsFault, WorkMemory, heavy_work,
    },
    extension::ClientAuth,
    net::{
        compress::{BodyEncoder, RequestBody},
        connect::{self, DestinationClient, DestinationConnector, HandshakeHint},
        request::{self, AuthHeaders, BoundedResponse, CredentialProvider},
    },
};
use destination_url::DestinationUrl;

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
    let mut url = DestinationUrl::parse(text)?;
    let encoder = BodyEncoder::http(settings.compression);
    let headers = headers(settings, encoder.as_ref(), &mut url)?;
    let destination = DestinationLabels {
        address: url.endpoint.host().into(),
        port: url.endpoint.port().to_string(),
        path: url.uri.path().into(),
    };
    let connector = DestinationConnector::for_url(&url.endpoint, url.is_secure(), &settings.tls)?;
    let exporter = OtlpHttp {
        handshake_hint: connector.handshake_hint(),
        client: connect::http_client(connector),
        url,
        headers,
        encoding: settings.encoding,
        encoder,
        credentials: CredentialProvider::new(auth),
    };
    Ok(ExporterParts {
        exporter: Arc::new(exporter),
        timeout: settings.timeout,
        retry: settings.retry.clone(),
        queue: settings.queue.clone(),
        destination,
    })
}

fn headers(
    settings: &OtlpHttpExporter,
    encoder: Option<&BodyEncoder>,
    url: &mut DestinationUrl,
) -> Result<HeaderMap, BuildError> {
    let mut headers = request::configured_headers(&settings.headers)?;
    if let Some(host) = headers.remove(HOST) {
        url.set_host(&host)?;
    }
    if let Some(login) = url.login.take() {
        headers.entry(AUTHORIZATION).or_insert(login);
    }
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(request::USER_AGENT));
    let content_type = match settings.encoding {
        BodyEncoding::Proto => PROTOBUF_CONTENT_TYPE,
        BodyEncoding::Json => JSON_CONTENT_TYPE,
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(encoder) = encoder {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoder.name()));
    }
    Ok(headers)
}

struct OtlpHttp {
    client: DestinationClient,
    handshake_hint: HandshakeHint,
    url: DestinationUrl,
    /// The headers of every request; credentials are added.
    headers: HeaderMap,
    encoding: BodyEncoding,
    encoder: Option<BodyEncoder>,
    credentials: CredentialProvider,
}

impl OtlpHttp {
    async fn export(&self, batch: &Batch) -> Result<SendSuccess, SendError> {
        // The charge is held as long as the body.
        let (made, _charge) = self.encode_body(batch).await?;
        let proof = self.credentials.current().await?;
        let result = self.post(request_body(batch, made.as_ref()), &proof).await;
        let Err(SendError { code: Code::Unauthenticated, .. }) = result else { return result };
        match self.credentials.refresh_rejected(&proof).await {
            Some(fresh) => self.post(request_body(batch, made.as_ref()), &fresh).await,
            None => result,
        }
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

    async fn post(&self, body: RequestBody, proof: &AuthHeaders) -> Result<SendSuccess, SendError> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request::apply_auth_headers(request.headers_mut(), proof);
        let sent = self.client.request(request).await;
        let response = sent.map_err(|error| self.connection_error(&error, self.handshake_hint.tls_fault(&error)))?;
        // The destination has answered, so that later failures are not for want of TLS or of a certificate.
        self.handshake_hint.reset();
        let (head, body) = response.into_parts();
        let answer = BoundedResponse::read(body)
            .await
            .map_err(|error| self.connection_error(&error, connect::tls_fault(&error)))?;
        response::send_result(&head, &answer).map_err(|mut error| {
            error.backend_status = match self.url.is_secure() {
                true if answer.wants_certificate() => Some(BackendStatus::Tls(TlsFault::CertificateWanted)),
                false if response::wants_tls(&head, &answer) => Some(BackendStatus::Tls(TlsFault::Wanted)),
                _ => error.backend_status,
            };
            let sent = self.headers.values().chain(proof.iter().map(|(_, value)| value));
            error.message = request::redact(format!("{}: {}", self.url, error.message), sent).into();
            error
        })
    }

    fn connection_error(&self, error: &(dyn std::error::Error + 'static), fault: Option<TlsFault>) -> SendError {
        let said = connect::backend_status(error, fault);
        SendError {
            backend_status: said,
            ..SendError::connection(format!("{}: {}", self.url, connect::error_chain(error)))
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
