//! Addresses and URLs.

/// The parts of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndpointAddress {
    /// `host:port`
    pub(super) authority: String,
    /// Whether the scheme is `https://` or `http://`, if there is one.
    pub(super) secure: Option<bool>,
}

const GRPC_HELP: &str = "write it as host:port, such as backend.example.com:4317";
const HTTP_HELP: &str = "write it as a whole URL, such as https://backend.example.com:4318";

/// Parses the address of a gRPC server.
pub(super) fn grpc(text: &str) -> Result<EndpointAddress, String> {
    let (secure, rest) = scheme(text).map_err(|what| format!("{what}; {GRPC_HELP}"))?;
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return Err(format!("has a path, which gRPC does not use; {GRPC_HELP}"));
    }
    match self::authority(authority).map_err(|what| format!("{what}; {GRPC_HELP}"))? {
        Some(_) => Ok(EndpointAddress { authority: authority.to_owned(), secure }),
        None => Err(format!("has no port; {GRPC_HELP}")),
    }
}

/// Checks the URL of an HTTP server. Returns whether it is `https://`.
pub(super) fn url(text: &str) -> Result<bool, String> {
    let (secure, rest) = scheme(text).map_err(|what| format!("{what}; {HTTP_HELP}"))?;
    let secure = secure.ok_or_else(|| format!("does not begin with https:// or http://; {HTTP_HELP}"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    self::authority(authority).map_err(|what| format!("{what}; {HTTP_HELP}"))?;
    if text.contains('#') {
        return Err(format!("has a fragment (#), which is never sent; {HTTP_HELP}"));
    }
    Ok(secure)
}

/// Splits off the scheme.
fn scheme(text: &str) -> Result<(Option<bool>, &str), &'static str> {
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
        return Err("contains spaces, control characters or non-ASCII characters");
    }
    match text.split_once("://") {
        None => Ok((None, text)),
        Some(("https", rest)) => Ok((Some(true), rest)),
        Some(("http", rest)) => Ok((Some(false), rest)),
        Some(_) => Err("has a scheme that is neither https nor http"),
    }
}

/// Checks `host` or `host:port`, and returns the port.
fn authority(text: &str) -> Result<Option<u16>, &'static str> {
    if text.contains('@') {
        return Err("contains user information; set credentials in `authentication`");
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => {
            let (address, after) = inner.split_once(']').ok_or("has a bracket that is not closed")?;
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err("has brackets without an IPv6 address");
            }
            match after.strip_prefix(':') {
                Some(port) => ("v6", Some(port)),
                None if after.is_empty() => ("v6", None),
                None => return Err("has text after the brackets that is not a port"),
            }
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err("has too many colons; write an IPv6 address in brackets");
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err("has no host");
    }
    if host.len() > 253 || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        return Err("has invalid characters in its host");
    }
    match port {
        None => Ok(None),
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && !port.starts_with('+') => Ok(Some(number)),
            _ => Err("has a port that is not a number from 1 to 65535"),
        },
    }
}
