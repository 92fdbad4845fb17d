//! `otlphttp`, `otlp_http`: OTLP over HTTP, in protobuf or JSON.
//!
//! *Guarantees.* Any 2xx is success; a body that says otherwise (`partial_success`) is read and never leads to a retry.
//! Only 429, 502, 503 and 504 are retryable, as the specification says. Redirects are not followed: what was sent with
//! credentials goes where the configuration says and nowhere else. An error names the URL without its query, and never a
//! header.

mod answer;
mod url;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request,
    header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT},
};
use kubewake_config::model::{Encoding, OtlpHttpExporter};
use kubewake_otlp::{
    Signal,
    json::{self, EncodeError},
};

use crate::{
    components::{BuildError, BuiltExporter},
    core::{
        Batch, Charge, Code, Delivered, Destination, ErrorClass, Exporter, Said, SendError, SendFuture, TlsFault,
        WorkMemory, heavy,
    },
    extension::ClientAuth,
    net::{
        connect::{self, Client, Connector, FirstWord},
        encode::{Encoder, Payload},
        request::{self, Answer, Credentials, Proof},
    },
};
use url::Url;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// An exporter for one signal, as its settings say.
pub(crate) fn build(
    settings: &OtlpHttpExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<BuiltExporter, BuildError> {
    let text = match signal {
        Signal::Traces => &settings.traces_url,
        Signal::Metrics => &settings.metrics_url,
        Signal::Logs => &settings.logs_url,
    };
    let text = text
        .as_ref()
        .ok_or_else(|| BuildError(format!("no URL for {signal}: set endpoint or {}_endpoint", signal.name())))?;
    let mut url = Url::parse(text)?;
    let encoder = Encoder::http(settings.compression);
    let headers = headers(settings, encoder.as_ref(), &mut url)?;
    let destination = Destination {
        address: url.endpoint.host().into(),
        port: url.endpoint.port().to_string(),
        path: url.uri.path().into(),
    };
    let connector = Connector::for_url(&url.endpoint, url.secure(), &settings.tls)?;
    let exporter = OtlpHttp {
        first_word: connector.first_word(),
        client: connect::http_client(connector),
        url,
        headers,
        encoding: settings.encoding,
        encoder,
        credentials: Credentials::new(auth),
    };
    Ok(BuiltExporter {
        exporter: Arc::new(exporter),
        timeout: settings.timeout,
        retry: settings.retry.clone(),
        queue: settings.queue.clone(),
        destination,
    })
}

fn headers(settings: &OtlpHttpExporter, encoder: Option<&Encoder>, url: &mut Url) -> Result<HeaderMap, BuildError> {
    let mut headers = request::configured(&settings.headers)?;
    if let Some(host) = headers.remove(HOST) {
        url.name_host(&host)?;
    }
    if let Some(login) = url.login.take() {
        headers.entry(AUTHORIZATION).or_insert(login);
    }
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(request::USER_AGENT));
    let content_type = match settings.encoding {
        Encoding::Proto => PROTOBUF,
        Encoding::Json => JSON,
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(encoder) = encoder {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoder.name()));
    }
    Ok(headers)
}

struct OtlpHttp {
    client: Client,
    first_word: FirstWord,
    url: Url,
    /// What every request carries; credentials come on top.
    headers: HeaderMap,
    encoding: Encoding,
    encoder: Option<Encoder>,
    credentials: Credentials,
}

impl OtlpHttp {
    async fn export(&self, batch: &Batch) -> Result<Delivered, SendError> {
        // The charge is held as long as what it is for.
        let (made, _charge) = self.make(batch).await?;
        let proof = self.credentials.current().await?;
        let result = self.post(body(batch, made.as_ref()), &proof).await;
        let Err(SendError { code: Code::Unauthenticated, .. }) = result else { return result };
        match self.credentials.renewed(&proof).await {
            Some(fresh) => self.post(body(batch, made.as_ref()), &fresh).await,
            None => result,
        }
    }

    /// The body, where it is not the requests as they are, and what was charged for it.
    async fn make(&self, batch: &Batch) -> Result<(Option<Bytes>, Option<Charge>), SendError> {
        let (json, charge) = match self.encoding {
            Encoding::Proto => (None, None),
            Encoding::Json => {
                let owned = batch.clone();
                let (json, charge) = heavy::run(batch.bytes(), move || in_json(&owned)).await?;
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
            Err(error) => Err(local(Code::Internal, format!("{} failed: {error}", encoder.name()))),
        }
    }

    async fn post(&self, body: Payload, proof: &Proof) -> Result<Delivered, SendError> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request::prove(request.headers_mut(), proof);
        let sent = self.client.request(request).await;
        let response = sent.map_err(|error| self.unreachable(&error, self.first_word.fault(&error)))?;
        // It has answered, so that nothing that breaks from here on is for want of TLS or of a certificate.
        self.first_word.forget();
        let (head, body) = response.into_parts();
        let answer = Answer::read(body).await.map_err(|error| self.unreachable(&error, connect::fault(&error)))?;
        answer::settle(&head, &answer).map_err(|mut error| {
            error.said = match self.url.secure() {
                true if answer.wants_certificate() => Some(Said::Tls(TlsFault::CertificateWanted)),
                false if answer::wants_tls(&head, &answer) => Some(Said::Tls(TlsFault::Wanted)),
                _ => error.said,
            };
            let sent = self.headers.values().chain(proof.iter().map(|(_, value)| value));
            error.message = request::redact(format!("{}: {}", self.url, error.message), sent).into();
            error
        })
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static), fault: Option<TlsFault>) -> SendError {
        let said = connect::said(error, fault);
        SendError { said, ..SendError::connection(format!("{}: {}", self.url, connect::explain(error))) }
    }
}

impl Exporter for OtlpHttp {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(self.export(batch))
    }
}

fn body(batch: &Batch, made: Option<&Bytes>) -> Payload {
    match made {
        Some(made) => made.clone().into(),
        None => Payload::new(batch.parts().iter().map(|part| part.bytes.clone()).collect()),
    }
}

/// One document for the whole batch: JSON cannot be joined by concatenation. It may be many times as long as the batch, so that it is charged for.
fn in_json(batch: &Batch) -> Result<(Bytes, Option<Charge>), SendError> {
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
        error => local(Code::InvalidArgument, format!("the batch has no JSON form: {error}")),
    })?;
    Ok((out.into(), memory.into_charge()))
}

fn local(code: Code, message: String) -> SendError {
    SendError { code, class: ErrorClass::Local, retryable: false, ..SendError::connection(message) }
}
