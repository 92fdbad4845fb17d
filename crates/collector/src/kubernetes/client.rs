//! Requests to the API server.

use std::{fs, time::Duration};

use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, USER_AGENT},
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kubewake_runtime::lock::Mutex;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::Instant;

use super::access::{BearerToken, ClusterAccess};
use crate::{
    components::BuildError,
    core::{BackendStatus, ErrorClass},
    net::{
        compress::RequestBody,
        connect::{self, DestinationConnector, HostPort},
        request,
    },
};

/// Timeout for the beginning of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit of a list page or an error message. A page has few objects, and an object at most 1.5 MiB.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// How long a token is used after it was read: the kubelet renews it long before it expires.
const MAX_TOKEN_AGE: Duration = Duration::from_secs(60);

/// Why a request failed. The message holds no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{server}: HTTP {status}: {message}")]
    Refused { server: String, status: StatusCode, message: String },
    /// The requested resource version is too old (410 Gone).
    #[error("the requested resource version is too old")]
    Expired,
    /// The server is unreachable, or closed the connection.
    #[error("{0}")]
    Connection(String),
    /// The response is not what was requested.
    #[error("invalid response of the API server: {0}")]
    Answer(String),
    /// The token cannot be read.
    #[error("failed to read the token: {0}")]
    Token(String),
    /// The server address or the credentials are unknown.
    #[error(transparent)]
    Access(#[from] BuildError),
}

impl ApiError {
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Refused { status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, .. } => {
                ErrorClass::Authentication
            }
            Self::Refused { status, .. } if status.is_server_error() => ErrorClass::Throttled,
            Self::Refused { status: StatusCode::TOO_MANY_REQUESTS, .. } => ErrorClass::Throttled,
            Self::Refused { .. } | Self::Expired => ErrorClass::Refused,
            Self::Connection(_) => ErrorClass::Connection,
            Self::Answer(_) => ErrorClass::Protocol,
            Self::Token(_) | Self::Access(_) => ErrorClass::Local,
        }
    }

    /// The HTTP status of the response, if there was one.
    pub(crate) fn backend_status(&self) -> Option<BackendStatus> {
        match self {
            Self::Refused { status, .. } => Some(BackendStatus::Http(*status)),
            _ => None,
        }
    }
}

/// A client of one API server.
pub(crate) struct ApiClient {
    client: connect::DestinationClient,
    server: String,
    token: BearerToken,
    cached_token: Mutex<Option<(Instant, HeaderValue)>>,
}

/// The body of an error response.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ApiStatus {
    message: String,
}

impl ApiClient {
    /// Creates a client for this access.
    pub(crate) fn new(access: &ClusterAccess) -> Result<Self, BuildError> {
        let bad = || BuildError(format!("the URL of the API server is not valid: {}", access.server));
        let uri: Uri = access.server.parse().map_err(|_| bad())?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad()),
        };
        let endpoint = HostPort::parse(uri.authority().ok_or_else(bad)?.as_str(), if secure { 443 } else { 80 })?;
        let connector = DestinationConnector::for_url(&endpoint, secure, &access.tls)?;
        Ok(Self {
            client: connect::http_client(connector),
            server: access.server.trim_end_matches('/').to_owned(),
            token: access.token.clone(),
            cached_token: Mutex::default(),
        })
    }

    /// Reads an object, or a page of a list.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, accept: &'static str) -> Result<T, ApiError> {
        let body = collect(self.open(path, accept).await?).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::Answer(error.to_string()))
    }

    /// Opens a response that may be long-lived.
    pub(crate) async fn open(&self, path: &str, accept: &'static str) -> Result<Incoming, ApiError> {
        let answer = self.send(path, accept).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer.into_body());
        }
        if status == StatusCode::UNAUTHORIZED {
            self.forget_token();
        }
        if status == StatusCode::GONE {
            return Err(ApiError::Expired);
        }
        let body = collect(answer.into_body()).await.unwrap_or_default();
        let said: ApiStatus = serde_json::from_slice(&body).unwrap_or_default();
        let message = said.message.chars().take(300).collect();
        Err(ApiError::Refused { server: self.server.clone(), status, message })
    }

    async fn send(&self, path: &str, accept: &'static str) -> Result<Response<Incoming>, ApiError> {
        let mut request = Request::new(RequestBody::default());
        *request.method_mut() = Method::GET;
        let uri = format!("{}{path}", self.server).parse();
        *request.uri_mut() = uri.map_err(|_| ApiError::Connection(format!("{path} is not a valid path")))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(USER_AGENT, HeaderValue::from_static(request::USER_AGENT));
        if let Some(token) = self.authorization()? {
            headers.insert(AUTHORIZATION, token);
        }
        let failed = |what: String| ApiError::Connection(format!("{}: {what}", self.server));
        match tokio::time::timeout(RESPONSE_TIMEOUT, self.client.request(request)).await {
            Err(_) => Err(failed(format!("no answer within {RESPONSE_TIMEOUT:?}"))),
            Ok(Err(error)) => Err(failed(connect::error_chain(&error))),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    fn authorization(&self) -> Result<Option<HeaderValue>, ApiError> {
        let bearer = |token: &str| {
            let value = request::sensitive_value(&format!("Bearer {}", token.trim()));
            value.ok_or_else(|| ApiError::Token("the token contains invalid characters".into()))
        };
        match &self.token {
            BearerToken::None => Ok(None),
            BearerToken::Fixed(token) => bearer(token.reveal()).map(Some),
            BearerToken::File(path) => {
                let mut read = self.cached_token.lock();
                if let Some((at, value)) = &*read
                    && at.elapsed() < MAX_TOKEN_AGE
                {
                    return Ok(Some(value.clone()));
                }
                let unread = |error| ApiError::Token(format!("{}: {error}", path.display()));
                let value = bearer(&fs::read_to_string(path).map_err(unread)?)?;
                *read = Some((Instant::now(), value.clone()));
                Ok(Some(value))
            }
        }
    }

    fn forget_token(&self) {
        *self.cached_token.lock() = None;
    }
}

async fn collect(mut body: Incoming) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::Connection(error.to_string()))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > MAX_RESPONSE_BYTES {
                return Err(ApiError::Answer(format!("the response is larger than {MAX_RESPONSE_BYTES} bytes")));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}
