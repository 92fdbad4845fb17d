//! A destination of HTTP requests, with its credentials.
//!
//! *Guaranteed*: redirects are not followed: a request with credentials goes where the configuration says and nowhere
//! else. An error names the URL without its query, and never a header. When the destination rejects the credentials,
//! fresh ones are tried once.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request,
    header::{AUTHORIZATION, HOST, USER_AGENT},
    response::Parts,
};
use kubewake_config::model::HttpExportConfig;

use super::{
    compress::RequestBody,
    connect::{self, DestinationClient, DestinationConnector, HandshakeHint},
    destination_url::DestinationUrl,
    http_error,
    request::{self, AuthHeaders, BoundedResponse, CredentialProvider},
};
use crate::{
    components::BuildError,
    core::{BackendStatus, Code, DestinationLabels, SendError, TlsFault},
    extension::ClientAuth,
};

/// Reads the body of a response piece by piece, and says whether it wants more.
pub(crate) type ResponseReader<'r> = dyn FnMut(&[u8]) -> ControlFlow<()> + Send + 'r;

/// A client for one URL.
pub(crate) struct HttpDestination {
    client: DestinationClient,
    handshake_hint: HandshakeHint,
    url: DestinationUrl,
    method: Method,
    /// The headers of every request; credentials are added.
    headers: HeaderMap,
    credentials: CredentialProvider,
    /// The limit of one request.
    timeout: Option<Duration>,
}

impl HttpDestination {
    /// A client that sends `POST` requests to a URL. `headers` are those that every request has; they are set in place
    /// of configured ones.
    pub(crate) fn new(
        url: &str,
        settings: &HttpExportConfig,
        headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        auth: Option<Arc<dyn ClientAuth>>,
    ) -> Result<Self, BuildError> {
        let mut url = DestinationUrl::parse(url)?;
        let mut all = request::configured_headers(&settings.headers)?;
        if let Some(host) = all.remove(HOST) {
            url.set_host(&host)?;
        }
        if let Some(login) = url.login.take() {
            all.entry(AUTHORIZATION).or_insert(login);
        }
        all.entry(USER_AGENT).or_insert(HeaderValue::from_static(request::USER_AGENT));
        for (name, value) in headers {
            all.insert(name, value);
        }
        let connector = DestinationConnector::for_url(&url.endpoint, url.is_secure(), &settings.tls)?;
        Ok(Self {
            handshake_hint: connector.handshake_hint(),
            client: connect::http_client(connector),
            url,
            method: Method::POST,
            headers: all,
            credentials: CredentialProvider::new(auth),
            timeout: None,
        })
    }

    /// The URL without its query, for messages.
    pub(crate) fn url(&self) -> impl std::fmt::Display + '_ {
        &self.url
    }

    /// The same with another method.
    #[must_use]
    pub(crate) fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The same with a limit for each request that [`HttpDestination::send`] sends, for exporters whose attempts take
    /// several requests.
    #[must_use]
    pub(crate) fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// The destination, for labels.
    pub(crate) fn labels(&self) -> DestinationLabels {
        DestinationLabels {
            address: self.url.endpoint.host().into(),
            port: self.url.endpoint.port().to_string(),
            path: self.url.uri.path().into(),
        }
    }

    /// Sends a request and interprets the response. `more` are headers of this request alone; `body` is called once for
    /// each attempt. The message of an error gets the URL, and loses every secret that was sent.
    pub(crate) async fn send<T>(
        &self,
        more: &HeaderMap,
        body: impl Fn() -> RequestBody + Send + Sync,
        interpret: impl Fn(&Parts, &BoundedResponse) -> Result<T, SendError> + Send + Sync,
    ) -> Result<T, SendError> {
        let mut read = request::response_limit();
        let send = self.send_and_read(more, body, interpret, &mut read);
        match self.timeout {
            None => send.await,
            Some(limit) => tokio::time::timeout(limit, send).await.unwrap_or_else(|_| Err(SendError::timeout(limit))),
        }
    }

    /// As [`HttpDestination::send`], for responses that may be long: `read` gets all bytes of a success, piece by
    /// piece, until it has enough.
    pub(crate) async fn send_and_read<T>(
        &self,
        more: &HeaderMap,
        body: impl Fn() -> RequestBody + Send + Sync,
        interpret: impl Fn(&Parts, &BoundedResponse) -> Result<T, SendError> + Send + Sync,
        read: &mut ResponseReader<'_>,
    ) -> Result<T, SendError> {
        let proof = self.credentials.current().await?;
        let result = self.attempt(more, body(), &proof, &interpret, read).await;
        let Err(SendError { code: Code::Unauthenticated, .. }) = result else { return result };
        match self.credentials.refresh_rejected(&proof).await {
            Some(fresh) => self.attempt(more, body(), &fresh, &interpret, read).await,
            None => result,
        }
    }

    async fn attempt<T>(
        &self,
        more: &HeaderMap,
        body: RequestBody,
        proof: &AuthHeaders,
        interpret: &(impl Fn(&Parts, &BoundedResponse) -> Result<T, SendError> + Sync),
        read: &mut ResponseReader<'_>,
    ) -> Result<T, SendError> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.uri.clone();
        *request.headers_mut() = self.headers.clone();
        for (name, value) in more {
            request.headers_mut().insert(name, value.clone());
        }
        request::apply_auth_headers(request.headers_mut(), proof);
        let sent = self.client.request(request).await;
        let response = sent.map_err(|error| self.connection_error(&error, self.handshake_hint.tls_fault(&error)))?;
        // The destination has answered, so that later failures are not for want of TLS or of a certificate.
        self.handshake_hint.reset();
        let (head, body) = response.into_parts();
        let answer = match head.status.is_success() {
            true => BoundedResponse::read_with(body, read).await,
            false => BoundedResponse::read(body).await,
        };
        let answer = answer.map_err(|error| self.connection_error(&error, connect::tls_fault(&error)))?;
        interpret(&head, &answer).map_err(|mut error| {
            error.backend_status = match self.url.is_secure() {
                true if answer.wants_certificate() => Some(BackendStatus::Tls(TlsFault::CertificateWanted)),
                false if http_error::wants_tls(&head, &answer) => Some(BackendStatus::Tls(TlsFault::Wanted)),
                _ => error.backend_status,
            };
            let sent = self.headers.values().chain(more.values()).chain(proof.iter().map(|(_, value)| value));
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
