//! Parses the address of a collector.

use super::TracingProtocol;
use crate::client::DialAddress;

const SCHEMES: &str =
    "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md";
/// The path of traces in OTLP over HTTP.
const OTLP_TRACES_PATH: &str = "/v1/traces";

/// A destination on the network of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracingEndpoint {
    pub address: DialAddress,
    pub authority: String,
    /// The path in OTLP over HTTP.
    pub path: String,
    /// Whether the scheme requests TLS.
    pub https: bool,
}

impl TracingEndpoint {
    /// Parses `host:port`, `dns:///host:port`, `unix:///path` and `unix-abstract:name`; with the extensions
    /// (`beyond`) also `http://` and `https://`.
    ///
    /// # Errors
    /// The text as kube-apiserver shows it, and the error.
    pub fn parse(text: &str, protocol: TracingProtocol, beyond: bool) -> Result<Self, (String, String)> {
        let of = |address, authority: &str| Self {
            address,
            authority: authority.to_owned(),
            path: OTLP_TRACES_PATH.to_owned(),
            https: false,
        };
        if let Some(name) = text.strip_prefix("unix-abstract:") {
            return Ok(of(DialAddress::Abstract(name.trim_start_matches("//").to_owned()), "localhost"));
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(of(DialAddress::Unix(path.strip_prefix("//").unwrap_or(path).to_owned()), "localhost"));
        }
        let shown = if text.contains("//") { text.to_owned() } else { format!("dns://{text}") };
        let (scheme, rest) = shown.split_once("://").unwrap_or(("", &shown));
        match scheme {
            "dns" => Self::dns(rest, protocol).map_err(|why| (shown.clone(), format!("parse {shown:?}: {why}"))),
            "http" | "https" if beyond => {
                Self::http(rest, protocol, scheme == "https").map_err(|why| (shown.clone(), why))
            }
            _ => Err((shown.clone(), format!("unsupported scheme: {scheme}.  {SCHEMES}"))),
        }
    }

    /// `host:port`, or the same after a DNS server.
    fn dns(rest: &str, protocol: TracingProtocol) -> Result<Self, String> {
        let name = rest.split_once('/').map_or(rest, |(_, name)| name);
        let (host, port) = tcp(if name.is_empty() { rest.trim_end_matches('/') } else { name }, protocol.port())?;
        let authority = join(&host, port);
        Ok(Self { address: DialAddress::Tcp(host, port), authority, path: OTLP_TRACES_PATH.to_owned(), https: false })
    }

    fn http(rest: &str, protocol: TracingProtocol, https: bool) -> Result<Self, String> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() && protocol == TracingProtocol::Grpc {
            return Err("a path is for protocol http/protobuf only".to_owned());
        }
        if authority.contains('@') {
            return Err("user information is not allowed; use headers".to_owned());
        }
        let (host, port) = tcp(authority, protocol.port())?;
        let path = if path.is_empty() { OTLP_TRACES_PATH.to_owned() } else { format!("/{path}") };
        let authority = join(&host, port);
        Ok(Self { address: DialAddress::Tcp(host, port), authority, path, https })
    }
}

/// Host and port. The default host is the local one, as in gRPC.
fn tcp(text: &str, default: u16) -> Result<(String, u16), String> {
    let (host, rest) = split(text);
    let port = match rest {
        "" | ":" => default,
        given => {
            let digits = given.strip_prefix(':').unwrap_or(given);
            let parsed =
                digits.parse().ok().filter(|port| *port > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()));
            parsed.ok_or_else(|| format!("invalid port {given:?} after host"))?
        }
    };
    if host.chars().any(|c| c.is_whitespace() || "\"<>\\^`{|}#?%".contains(c)) {
        return Err(format!("invalid character in host name {host:?}"));
    }
    Ok((if host.is_empty() { "localhost".to_owned() } else { host.to_owned() }, port))
}

/// The host of `host:port`; of `[::1]:4317` the part in brackets.
pub(super) fn host(authority: &str) -> &str {
    split(authority).0
}

/// The host, and the rest with its colon.
fn split(authority: &str) -> (&str, &str) {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(parts) => parts,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    }
}

fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
