//! Requests to the API server.

use std::{
    fs,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, USER_AGENT},
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kubewake_config::mounted;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::Instant;

use super::access::{Access, Token};
use crate::{
    components::BuildError,
    core::{ErrorClass, Said},
    net::{
        connect::{self, Connector, Endpoint},
        encode::Payload,
        request,
    },
};

/// The API server has this long to begin its answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// A page of a list, or the words of a refusal. A page has few objects, and an object at most 1.5 MiB.
const MAX_ANSWER: usize = 64 << 20;
/// How long a token that was read is used: the kubelet renews it long before it expires.
const TOKEN_AGE: Duration = Duration::from_secs(60);

/// Why a request failed. It holds no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The server said no.
    #[error("{server}: HTTP {status}: {message}")]
    Refused {
        /// Who.
        server: String,
        /// How.
        status: StatusCode,
        /// Why.
        message: String,
    },
    /// What we asked for is too long ago.
    #[error("the server no longer knows that version")]
    Expired,
    /// The server cannot be reached, or broke off.
    #[error("{0}")]
    Connection(String),
    /// It answered something else than was asked for.
    #[error("an answer that cannot be read: {0}")]
    Answer(String),
    /// The token cannot be read.
    #[error("the token cannot be read: {0}")]
    Token(String),
    /// It is not known where the server is, or who we are there.
    #[error(transparent)]
    Access(#[from] BuildError),
}

impl ApiError {
    /// Where to look.
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

    /// What the server answered with, if it did.
    pub(crate) fn said(&self) -> Option<Said> {
        match self {
            Self::Refused { status, .. } => Some(Said::Http(*status)),
            _ => None,
        }
    }
}

/// A client of one API server.
pub(crate) struct Client {
    client: connect::Client,
    /// `https://host:port`
    server: String,
    token: Token,
    read: Mutex<Option<(Instant, HeaderValue)>>,
}

/// What a refusal looks like.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    message: String,
}

impl Client {
    /// A client with this access.
    pub(crate) fn new(access: &Access) -> Result<Self, BuildError> {
        let bad = || BuildError(format!("the URL of the API server cannot be read: {}", access.server));
        let uri: Uri = access.server.parse().map_err(|_| bad())?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad()),
        };
        let endpoint = Endpoint::parse(uri.authority().ok_or_else(bad)?.as_str(), if secure { 443 } else { 80 })?;
        let connector = Connector::for_url(&endpoint, secure, &access.tls)?;
        Ok(Self {
            client: connect::http_client(connector),
            server: access.server.trim_end_matches('/').to_owned(),
            token: access.token.clone(),
            read: Mutex::default(),
        })
    }

    /// Reads an object, or a page of a list.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, accept: &'static str) -> Result<T, ApiError> {
        let body = collect(self.open(path, accept).await?).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::Answer(error.to_string()))
    }

    /// Opens an answer that may go on for long.
    pub(crate) async fn open(&self, path: &str, accept: &'static str) -> Result<Incoming, ApiError> {
        let answer = self.ask(path, accept).await?;
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
        let said: Status = serde_json::from_slice(&body).unwrap_or_default();
        let message = said.message.chars().take(300).collect();
        Err(ApiError::Refused { server: self.server.clone(), status, message })
    }

    async fn ask(&self, path: &str, accept: &'static str) -> Result<Response<Incoming>, ApiError> {
        let mut request = Request::new(Payload::default());
        *request.method_mut() = Method::GET;
        let uri = format!("{}{path}", self.server).parse();
        *request.uri_mut() = uri.map_err(|_| ApiError::Connection(format!("{path} is no path")))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(USER_AGENT, HeaderValue::from_static(request::USER_AGENT));
        if let Some(token) = self.authorization()? {
            headers.insert(AUTHORIZATION, token);
        }
        let failed = |what: String| ApiError::Connection(format!("{}: {what}", self.server));
        match tokio::time::timeout(ANSWER_LIMIT, self.client.request(request)).await {
            Err(_) => Err(failed(format!("no answer within {ANSWER_LIMIT:?}"))),
            Ok(Err(error)) => Err(failed(connect::explain(&error))),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    fn authorization(&self) -> Result<Option<HeaderValue>, ApiError> {
        let bearer = |token: &str| {
            let value = request::sensitive(&format!("Bearer {}", token.trim()));
            value.ok_or_else(|| ApiError::Token("it cannot be sent in a header".into()))
        };
        match &self.token {
            Token::None => Ok(None),
            Token::Fixed(token) => bearer(token.reveal()).map(Some),
            Token::File(path) => {
                let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((at, value)) = &*read
                    && at.elapsed() < TOKEN_AGE
                {
                    return Ok(Some(value.clone()));
                }
                let unread = |error| ApiError::Token(format!("{}: {error}", path.display()));
                let value = bearer(&fs::read_to_string(mounted(path)).map_err(unread)?)?;
                *read = Some((Instant::now(), value.clone()));
                Ok(Some(value))
            }
        }
    }

    fn forget_token(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

async fn collect(mut body: Incoming) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::Connection(error.to_string()))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > MAX_ANSWER {
                return Err(ApiError::Answer(format!("more than {MAX_ANSWER} bytes")));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}
