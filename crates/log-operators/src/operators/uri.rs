//! `uri_parser`: the parts of a URI.

use super::RecordError;
use crate::value::{LogMap, LogValue};

/// The parts of a URI that are there: `scheme`, `user`, `host`, `port`, `path` and `query`.
pub(super) fn parse(text: &[u8]) -> Result<LogValue, RecordError> {
    let text = std::str::from_utf8(text).map_err(|_| RecordError::new("the URI is not UTF-8"))?;
    let wrong = |problem: &'static str| RecordError::new(format!("the text is not a URI: {problem}"));
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.chars().any(|c| c.is_ascii_control()) {
        return Err(wrong("it has control characters"));
    }
    let mut values = LogMap::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            values.insert(key.to_owned(), value.into());
        }
    };
    let text = text.split_once('#').map_or(text, |(before, _)| before);
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        Some(("", _)) => return Err(wrong("it has no scheme before the colon")),
        _ => (String::new(), text),
    };
    // Without a scheme a URI is a path, or a query alone.
    if scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/') {
        return Err(wrong("it has neither a scheme nor a path"));
    }
    put("scheme", &scheme);
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
            let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
            put("user", &decoded(user.split(':').next().unwrap_or_default(), false)?);
            let (host, port) = split_port(host).ok_or_else(|| wrong("its port is no number"))?;
            put("host", &decoded(host, false)?);
            put("port", port);
            path
        }
        None => rest,
    };
    put("path", path);
    let parameters = parameters(query)?;
    if !parameters.is_empty() {
        values.insert("query".to_owned(), LogValue::Map(parameters));
    }
    Ok(LogValue::Map(values))
}

fn is_scheme(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(allowed)
}

/// The host without the brackets of an IPv6 address, and the port; `None` if that is no number.
fn split_port(host: &str) -> Option<(&str, &str)> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(address) => address.split_once(']')?,
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let port = rest.strip_prefix(':').unwrap_or_default();
    let is_port = rest.is_empty() || rest.starts_with(':') && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then_some((name, port))
}

/// The values of each parameter, in their order.
fn parameters(query: &str) -> Result<LogMap, RecordError> {
    let mut parameters = LogMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = LogValue::from(decoded(value, true)?);
        match parameters.entry(decoded(key, true)?).or_insert_with(|| LogValue::List(Vec::new())) {
            LogValue::List(values) => values.push(value),
            other => *other = LogValue::List(vec![value]),
        }
    }
    Ok(parameters)
}

/// A text without its escapes; in a query `+` is a space.
fn decoded(text: &str, in_query: bool) -> Result<String, RecordError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                match (digit(bytes.next()), digit(bytes.next())) {
                    (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
                    _ => return Err(RecordError::new("the text is not a URI: it has an incomplete escape")),
                }
            }
            b'+' if in_query => out.push(b' '),
            byte => out.push(byte),
        }
    }
    Ok(String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
