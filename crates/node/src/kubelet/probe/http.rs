//! HTTP GET as the kubelet does it: a connection for each request, redirects on the same host, and any answer from 200 to 399 is well.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri, header, uri};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::timeout,
};

use super::{ANSWER, Checker, Fault, Target, USER_AGENT, dial, host, tls::Unverified};

/// As often as Go's client.
const REDIRECTS: usize = 10;

/// The longest head of an answer.
const HEAD: usize = 64 << 10;

/// The request of a hook: how it is answered does not matter, only that it is.
pub async fn get(checker: &Checker, action: &HTTPGetAction, target: &Target, limit: Duration) -> Result<(), Fault> {
    request(action, target, &checker.tls, limit).await.map(drop)
}

/// Whether the answer is well.
pub(super) async fn check(
    action: &HTTPGetAction,
    target: &Target,
    tls: &Unverified,
    limit: Duration,
) -> Result<(), Fault> {
    match request(action, target, tls, limit).await? {
        status if (200..400).contains(&status.as_u16()) => Ok(()),
        status => Err(format!("HTTP probe failed with statuscode: {}", status.as_u16()).into()),
    }
}

async fn request(
    action: &HTTPGetAction,
    target: &Target,
    tls: &Unverified,
    limit: Duration,
) -> Result<StatusCode, Fault> {
    let url = url(action, target)?;
    let headers = headers(action).map_err(Fault::Errored)?;
    let answer = timeout(limit, follow(url.clone(), headers, tls)).await;
    let late = || format!("Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
    Ok(answer.unwrap_or_else(|_| Err(late()))?)
}

fn url(action: &HTTPGetAction, target: &Target) -> Result<Uri, Fault> {
    let scheme = action.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let authority = dial::join(&host(action.host.as_deref(), target), target.port(&action.port)?);
    let path = action.path.as_deref().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let url = format!("{scheme}://{authority}{slash}{path}");
    url.parse().map_err(|error| Fault::Errored(format!("invalid URL {url:?}: {error}")))
}

type Headers = Vec<(HeaderName, HeaderValue)>;

/// The usual ones, unless the probe has its own or wants none by giving an empty one.
fn headers(action: &HTTPGetAction) -> Result<Headers, String> {
    let mut headers = Headers::new();
    for given in action.http_headers.iter().flatten() {
        let name = given.name.parse().map_err(|_| format!("invalid header name {:?}", given.name))?;
        // The value may be a secret.
        let value = given.value.parse().map_err(|_| format!("invalid value of header {:?}", given.name))?;
        headers.push((name, value));
    }
    for (name, value) in [(header::USER_AGENT, USER_AGENT), (header::ACCEPT, "*/*")] {
        if !headers.iter().any(|(held, _)| *held == name) {
            headers.push((name, HeaderValue::from_static(value)));
        }
    }
    headers.retain(|(name, value)| !(matches!(*name, header::USER_AGENT | header::ACCEPT) && value.is_empty()));
    Ok(headers)
}

/// The status at the end of all redirects that stay on the host. One that leads away is an answer like others.
async fn follow(mut url: Uri, mut headers: Headers, tls: &Unverified) -> Result<StatusCode, String> {
    let host = url.host().map(str::to_owned);
    for _ in 0..REDIRECTS {
        let (status, location) = once(&url, &headers, tls).await.map_err(|error| format!("Get \"{url}\": {error}"))?;
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(status);
        }
        let Some(location) = location else {
            return Err(format!("Get \"{url}\": {} response missing Location header", status.as_u16()));
        };
        let next = join(&url, &location).ok_or_else(|| format!("failed to parse Location header {location:?}"))?;
        if next.host() != host.as_deref() {
            return Ok(status);
        }
        if next.authority() != url.authority() {
            headers.retain(|(name, _)| *name != header::HOST);
        }
        url = next;
    }
    Err(format!("Get \"{url}\": stopped after {REDIRECTS} redirects"))
}

/// Where a `Location` leads from a URL.
fn join(from: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    let mut parts = from.clone().into_parts();
    if location.contains("://") {
        return location.parse().ok().filter(|url: &Uri| url.authority().is_some());
    }
    if let Some(rest) = location.strip_prefix("//") {
        return format!("{}://{rest}", from.scheme_str()?).parse().ok();
    }
    let path = if location.starts_with('/') {
        location.to_owned()
    } else {
        let directory = from.path().rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{directory}/{location}")
    };
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// One request, read to its end or until it is long enough: the status and where it leads.
async fn once(url: &Uri, headers: &Headers, tls: &Unverified) -> Result<(StatusCode, Option<String>), String> {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let secure = url.scheme() == Some(&uri::Scheme::HTTPS);
    let stream = dial::connect(host, url.port_u16().unwrap_or(if secure { 443 } else { 80 })).await?;
    if secure {
        exchange(tls.connect(host, stream).await?, url, headers).await
    } else {
        exchange(stream, url, headers).await
    }
}

async fn exchange<S>(stream: S, url: &Uri, headers: &Headers) -> Result<(StatusCode, Option<String>), String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let handshake = http1::Builder::new().max_buf_size(HEAD).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(|error| error.to_string())?;
    // Dropped with this request, and the connection with it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = build(url, headers).map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| words(&error))?;
    let (head, body) = response.into_parts();
    match Limited::new(body, ANSWER).collect().await {
        Err(error) if !error.is::<LengthLimitError>() => return Err(error.to_string()),
        _ => {}
    }
    let location = head.headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
    Ok((head.status, location.map(str::to_owned)))
}

/// The status of an answer that consists of these bytes, and where it leads.
#[cfg(feature = "fuzzing")]
pub(crate) async fn read_answer(answer: &[u8]) -> Result<(StatusCode, Option<String>), String> {
    use tokio::io::AsyncWriteExt as _;

    // Wide enough for the request, which nobody reads, and for the answer.
    let (stream, mut server) = tokio::io::duplex(1 << 20);
    server.write_all(answer).await.map_err(|error| error.to_string())?;
    server.shutdown().await.map_err(|error| error.to_string())?;
    exchange(stream, &Uri::from_static("http://10.0.0.1:8080/health"), &Headers::new()).await
}

/// Where a `Location` leads from a URL.
#[cfg(feature = "fuzzing")]
pub(crate) fn redirected(from: &Uri, location: &str) -> Option<Uri> {
    join(from, location)
}

fn build(url: &Uri, headers: &Headers) -> Result<Request<Empty<Bytes>>, http::Error> {
    let mut request = Request::get(url.path_and_query().map_or("/", |path| path.as_str()));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if !headers.iter().any(|(name, _)| *name == header::HOST) {
        request = request.header(header::HOST, url.authority().map_or("", |authority| authority.as_str()));
    }
    request.header(header::CONNECTION, "close").body(Empty::new())
}

fn words(error: &hyper::Error) -> String {
    if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
}
