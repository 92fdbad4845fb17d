//! URLs that clients send requests to.

use crate::decode::{Cursor, DecodeReport, scalar};

/// A URL for requests; an empty one counts as missing.
pub(crate) fn url(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let text = scalar::text(at, report)?;
    if text.is_empty() {
        return None;
    }
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let reason = match rest {
        None => "does not begin with http:// or https://",
        Some(_) if text.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            "has spaces or control characters in it"
        }
        Some(rest) => match authority_fault(rest) {
            Some(reason) => reason,
            None => return Some(text),
        },
    };
    let help = match rest {
        None if at.node.origin.is_none() && !text.contains("://") => {
            format!("write http://{0} or https://{0}", crate::problem::crop(&text))
        }
        _ => "write a complete URL, such as https://backend.example.com:4318".to_owned(),
    };
    report.error(at, format!("`{}` must be a URL: {} {reason}", at.name(), at.subject(&text)), Some(help));
    None
}

fn authority_fault(rest: &str) -> Option<&'static str> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((name, after)) => (name, after.strip_prefix(':')),
            None => return Some("has a bracket that is not closed"),
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if name.is_empty() {
        return Some("has no host");
    }
    match port {
        None | Some("") => None,
        Some(port) if port.parse::<u16>().is_ok() => None,
        Some(_) => Some("has an invalid port"),
    }
}
