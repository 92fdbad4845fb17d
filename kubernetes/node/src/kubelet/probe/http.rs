//! HTTP GET by the kubelet's rules: one connection per request, redirects on the same host, and success for any
//! status from 200 to 399.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri, header, uri};
use http_body_util::Empty;
use k8s_openapi::api::core::v1::HTTPGetAction;
use kubewake_runtime::http_client::{ResponseReadError, send_request};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{
    MAX_RESPONSE_BYTES, ProbeChecker, ProbeError, ProbeTarget, USER_AGENT, dial, host_or_pod_ip, tls::UnverifiedTls,
};

/// The limit of Go's client.
const MAX_REDIRECTS: usize = 10;

/// Sends the request of a hook. Any response counts as success.
pub async fn send_hook_request(
    checker: &ProbeChecker,
    action: &HTTPGetAction,
    target: &ProbeTarget,
    limit: Duration,
) -> Result<(), ProbeError> {
    send_probe_request(action, target, &checker.tls, limit).await.map(drop)
}

/// Whether the response is a success.
pub(super) async fn check_http(
    action: &HTTPGetAction,
    target: &ProbeTarget,
    tls: &UnverifiedTls,
    limit: Duration,
) -> Result<(), ProbeError> {
    match send_probe_request(action, target, tls, limit).await? {
        status if (200..400).contains(&status.as_u16()) => Ok(()),
        status => Err(format!("HTTP probe failed with statuscode: {}", status.as_u16()).into()),
    }
}

async fn send_probe_request(
    action: &HTTPGetAction,
    target: &ProbeTarget,
    tls: &UnverifiedTls,
    limit: Duration,
) -> Result<StatusCode, ProbeError> {
    let url = probe_url(action, target)?;
    let headers = probe_headers(action).map_err(ProbeError::Errored)?;
    let answer = timeout(limit, follow_redirects(url.clone(), headers, tls)).await;
    let late = || format!("Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
    Ok(answer.unwrap_or_else(|_| Err(late()))?)
}

fn probe_url(action: &HTTPGetAction, target: &ProbeTarget) -> Result<Uri, ProbeError> {
    let scheme = action.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let authority =
        dial::join_host_port(&host_or_pod_ip(action.host.as_deref(), target), target.resolve_port(&action.port)?);
    let path = action.path.as_deref().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let url = format!("{scheme}://{authority}{slash}{path}");
    url.parse().map_err(|error| ProbeError::Errored(format!("invalid URL {url:?}: {error}")))
}

type HeaderList = Vec<(HeaderName, HeaderValue)>;

/// The default headers, unless the probe overrides one or removes it with an empty value.
fn probe_headers(action: &HTTPGetAction) -> Result<HeaderList, String> {
    let mut headers = HeaderList::new();
    for given in action.http_headers.iter().flatten() {
        let name = given.name.parse().map_err(|_| format!("invalid header name {:?}", given.name))?;
        // The error omits the value, which may be a secret.
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

/// The final status after redirects on the same host. A redirect to another host is treated as a response.
async fn follow_redirects(mut url: Uri, mut headers: HeaderList, tls: &UnverifiedTls) -> Result<StatusCode, String> {
    let host = url.host().map(str::to_owned);
    for _ in 0..MAX_REDIRECTS {
        let (status, location) =
            send_once(&url, &headers, tls).await.map_err(|error| format!("Get \"{url}\": {error}"))?;
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(status);
        }
        let Some(location) = location else {
            return Err(format!("Get \"{url}\": {} response missing Location header", status.as_u16()));
        };
        let next =
            resolve_location(&url, &location).ok_or_else(|| format!("failed to parse Location header {location:?}"))?;
        if next.host() != host.as_deref() {
            return Ok(status);
        }
        if next.authority() != url.authority() {
            headers.retain(|(name, _)| *name != header::HOST);
        }
        url = next;
    }
    Err(format!("Get \"{url}\": stopped after {MAX_REDIRECTS} redirects"))
}

/// Resolves a `Location` relative to a URL.
fn resolve_location(from: &Uri, location: &str) -> Option<Uri> {
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

/// Sends one request and reads the response, up to the limit. Returns the status and the redirect target.
async fn send_once(
    url: &Uri,
    headers: &HeaderList,
    tls: &UnverifiedTls,
) -> Result<(StatusCode, Option<String>), String> {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let secure = url.scheme() == Some(&uri::Scheme::HTTPS);
    let stream = dial::connect_tcp(host, url.port_u16().unwrap_or(if secure { 443 } else { 80 })).await?;
    if secure {
        exchange(tls.connect(host, stream).await?, url, headers).await
    } else {
        exchange(stream, url, headers).await
    }
}

async fn exchange<S>(stream: S, url: &Uri, headers: &HeaderList) -> Result<(StatusCode, Option<String>), String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let request = build_request(url, headers).map_err(|error| error.to_string())?;
    let response = send_request(stream, request).await.map_err(|error| error_message(&error))?;
    let status = response.status();
    let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
    let location = location.map(str::to_owned);
    match response.read_body(MAX_RESPONSE_BYTES).await {
        Err(ResponseReadError::Broken(error)) => Err(error.to_string()),
        // The rest of a long response does not matter.
        Ok(_) | Err(ResponseReadError::TooLong) => Ok((status, location)),
    }
}

/// The status and the redirect target of a response with these bytes.
#[cfg(feature = "fuzzing")]
pub(crate) async fn read_answer(answer: &[u8]) -> Result<(StatusCode, Option<String>), String> {
    use tokio::io::AsyncWriteExt as _;

    // Large enough for the request, which is not read, and for the response.
    let (stream, mut server) = tokio::io::duplex(1 << 20);
    server.write_all(answer).await.map_err(|error| error.to_string())?;
    server.shutdown().await.map_err(|error| error.to_string())?;
    exchange(stream, &Uri::from_static("http://10.0.0.1:8080/health"), &HeaderList::new()).await
}

/// Resolves a `Location` relative to a URL.
#[cfg(feature = "fuzzing")]
pub(crate) fn resolve_redirect(from: &Uri, location: &str) -> Option<Uri> {
    resolve_location(from, location)
}

fn build_request(url: &Uri, headers: &HeaderList) -> Result<Request<Empty<Bytes>>, http::Error> {
    let mut request = Request::get(url.path_and_query().map_or("/", |path| path.as_str()));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if !headers.iter().any(|(name, _)| *name == header::HOST) {
        request = request.header(header::HOST, url.authority().map_or("", |authority| authority.as_str()));
    }
    request.header(header::CONNECTION, "close").body(Empty::new())
}

fn error_message(error: &hyper::Error) -> String {
    if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
}
