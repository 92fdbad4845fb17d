//! `otlp`, `otlp_grpc`: OTLP over gRPC, framed on HTTP/2 directly.
//!
//! A unary call is a prefix of five bytes and a message, and the message is the concatenation of the batch's
//! requests: without compression they leave as the bytes that they are, and nothing is copied.
//!
//! *Guaranteed*: one call for each attempt; a second one only when the destination rejects credentials and the
//! authenticator has newer ones. An error names the endpoint and never a header.

mod response;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version,
    header::{CONTENT_TYPE, TE, USER_AGENT},
    uri::{Authority, PathAndQuery, Scheme},
};
use kubewake_config::model::OtlpGrpcExporter;
use kubewake_otlp::Signal;

use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{Batch, Code, DestinationLabels, ErrorClass, Exporter, SendError, SendFuture, SendSuccess, TlsFault},
    extension::ClientAuth,
    net::{
        compress::{BodyEncoder, RequestBody},
        connect::{self, DestinationClient, DestinationConnector, HandshakeHint, HostPort},
        request::{self, AuthHeaders, BoundedResponse, CredentialProvider},
        tls,
    },
};

/// Flag and length before a message.
const PREFIX_BYTES: usize = 5;
/// gRPC's default for an endpoint without a port.
const DEFAULT_PORT: u16 = 443;

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

pub(crate) fn prepare(
    settings: &OtlpGrpcExporter,
    context: &ExporterContext<'_>,
) -> Result<PreparedExporter, BuildError> {
    build(settings, context.pipeline.signal, context.auth.clone()).map(PreparedExporter::new)
}

/// Builds the exporter for one signal.
pub(crate) fn build(
    settings: &OtlpGrpcExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<ExporterParts, BuildError> {
    let proves = auth.is_some();
    let built = build_without_warning(settings, signal, auth)?;
    if proves && tls::client_config(&settings.tls, &[connect::ALPN_H2])?.is_none() {
        let DestinationLabels { address, port, .. } = &built.destination;
        tracing::warn!(endpoint = %format_args!("{address}:{port}"), "credentials are sent without TLS");
    }
    Ok(built)
}

/// As [`build`], without the warning about credentials that are sent without TLS.
pub(crate) fn build_without_warning(
    settings: &OtlpGrpcExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<ExporterParts, BuildError> {
    let endpoint = HostPort::parse(&settings.endpoint, DEFAULT_PORT)?;
    let tls = tls::client_config(&settings.tls, &[connect::ALPN_H2])?;
    let (authority, tls) = match tls {
        None => (authority(settings, None, &endpoint)?, None),
        Some(config) => {
            let name = settings.tls.server_name_override.as_deref().filter(|name| !name.is_empty());
            let authority = authority(settings, name, &endpoint)?;
            let proves = connect::server_name(name.unwrap_or(authority.host()))?;
            (authority, Some((config, proves)))
        }
    };
    let scheme = if tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
    let encoder = BodyEncoder::grpc(settings.compression)?;
    let connector = DestinationConnector::new(&endpoint, tls);
    let exporter = OtlpGrpc {
        headers: headers(settings, encoder.as_ref())?,
        handshake_hint: connector.handshake_hint(),
        client: connect::http2_client(connector, settings.keepalive.as_ref()),
        uri: uri(scheme, authority, signal)?,
        encoder,
        credentials: CredentialProvider::new(auth),
        endpoint: endpoint.authority().to_string(),
    };
    let destination = DestinationLabels {
        address: endpoint.host().into(),
        port: endpoint.port().to_string(),
        ..DestinationLabels::default()
    };
    Ok(ExporterParts {
        exporter: Arc::new(exporter),
        timeout: settings.timeout,
        retry: settings.retry.clone(),
        queue: settings.queue.clone(),
        destination,
    })
}

struct OtlpGrpc {
    client: DestinationClient,
    handshake_hint: HandshakeHint,
    uri: Uri,
    /// The headers of every call; credentials are added.
    headers: HeaderMap,
    encoder: Option<BodyEncoder>,
    credentials: CredentialProvider,
    endpoint: String,
}

impl OtlpGrpc {
    async fn export(&self, batch: &Batch) -> Result<SendSuccess, SendError> {
        let packed = match &self.encoder {
            Some(encoder) => Some(self.compress_message(encoder, batch).await?),
            None => None,
        };
        let proof = self.credentials.current().await?;
        let result = self.call(self.message(batch, packed.as_ref())?, &proof).await;
        let Err(SendError { code: Code::Unauthenticated, .. }) = result else { return result };
        match self.credentials.refresh_rejected(&proof).await {
            Some(fresh) => self.call(self.message(batch, packed.as_ref())?, &fresh).await,
            None => result,
        }
    }

    async fn call(&self, message: RequestBody, proof: &AuthHeaders) -> Result<SendSuccess, SendError> {
        let mut request = Request::new(message);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = Version::HTTP_2;
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
            let sent = self.headers.values().chain(proof.iter().map(|(_, value)| value));
            error.message = request::redact(format!("{}: {}", self.endpoint, error.message), sent).into();
            error
        })
    }

    /// The compressed message with its prefix.
    async fn compress_message(&self, encoder: &BodyEncoder, batch: &Batch) -> Result<Bytes, SendError> {
        let parts = batch.parts().iter().map(|part| &part.bytes);
        let packed = encoder.encode(parts, PREFIX_BYTES).await;
        let mut packed =
            packed.map_err(|error| local_error(format!("{} compression failed: {error}", encoder.name())))?;
        let prefix = prefix(true, packed.len() - PREFIX_BYTES)?;
        if let Some(room) = packed.first_chunk_mut() {
            *room = prefix;
        }
        Ok(packed.into())
    }

    fn message(&self, batch: &Batch, packed: Option<&Bytes>) -> Result<RequestBody, SendError> {
        if let Some(packed) = packed {
            return Ok(packed.clone().into());
        }
        let mut pieces = Vec::with_capacity(batch.parts().len() + 1);
        pieces.push(Bytes::copy_from_slice(&prefix(false, batch.bytes())?));
        pieces.extend(batch.parts().iter().map(|part| part.bytes.clone()));
        Ok(RequestBody::new(pieces))
    }

    fn connection_error(&self, error: &(dyn std::error::Error + 'static), fault: Option<TlsFault>) -> SendError {
        let said = connect::backend_status(error, fault);
        SendError {
            backend_status: said,
            ..SendError::connection(format!("{}: {}", self.endpoint, connect::error_chain(error)))
        }
    }
}

impl Exporter for OtlpGrpc {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(self.export(batch))
    }
}

fn prefix(compressed: bool, length: usize) -> Result<[u8; PREFIX_BYTES], SendError> {
    let length = u32::try_from(length)
        .map_err(|_| local_error("a batch of more than 4 GiB exceeds the gRPC message limit".into()))?;
    let [a, b, c, d] = length.to_be_bytes();
    Ok([u8::from(compressed), a, b, c, d])
}

fn local_error(message: String) -> SendError {
    SendError { code: Code::Internal, class: ErrorClass::Local, retryable: false, ..SendError::connection(message) }
}

/// The `:authority` of the calls, chosen as in gRPC.
fn authority(
    settings: &OtlpGrpcExporter,
    server_name: Option<&str>,
    endpoint: &HostPort,
) -> Result<Authority, BuildError> {
    match settings.authority.as_deref().or(server_name).filter(|name| !name.is_empty()) {
        None => Ok(endpoint.authority().clone()),
        Some(name) => name.parse().map_err(|_| BuildError(format!("\"{name}\" is not a valid authority"))),
    }
}

fn uri(scheme: Scheme, authority: Authority, signal: Signal) -> Result<Uri, BuildError> {
    let path = PathAndQuery::from_static(match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    });
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
    uri.map_err(|error| BuildError(format!("the endpoint is not valid: {error}")))
}

/// The headers of every call. Configured values of gRPC's reserved headers are replaced, as in the Collector.
fn headers(settings: &OtlpGrpcExporter, encoder: Option<&BodyEncoder>) -> Result<HeaderMap, BuildError> {
    let mut headers = request::configured_headers(&settings.headers)?;
    for (name, value) in headers.iter_mut().filter(|(name, _)| name.as_str().ends_with("-bin")) {
        *value = request::sensitive_value(&STANDARD_NO_PAD.encode(value.as_bytes()))
            .ok_or_else(|| BuildError(format!("the value of header \"{name}\" contains invalid characters")))?;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(USER_AGENT, HeaderValue::from_static(request::USER_AGENT));
    headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.remove(GRPC_ENCODING);
    if let Some(encoder) = encoder {
        headers.insert(GRPC_ENCODING, HeaderValue::from_static(encoder.name()));
    }
    headers.remove(GRPC_TIMEOUT);
    if let Some(timeout) = settings.timeout.and_then(grpc_timeout) {
        headers.insert(GRPC_TIMEOUT, timeout);
    }
    Ok(headers)
}

/// A `grpc-timeout`: a duration of at most eight digits and a unit.
fn grpc_timeout(timeout: Duration) -> Option<HeaderValue> {
    const MAX_GRPC_TIMEOUT_VALUE: u128 = 100_000_000;
    let units = [("u", timeout.as_micros()), ("m", timeout.as_millis()), ("S", u128::from(timeout.as_secs()))];
    let (unit, number) = units.into_iter().find(|(_, number)| *number < MAX_GRPC_TIMEOUT_VALUE)?;
    HeaderValue::try_from(format!("{number}{unit}")).ok()
}
