//! What a request is about, read from its method, path and query as kube-apiserver does.

use std::borrow::Cow;

use http::Method;

use crate::api::GroupVersion;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// As in RBAC: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for paths that are no
    /// resources the method in lower case.
    pub verb: &'static str,
    /// The path as it came, decoded.
    pub path: String,
    /// Whether it is about objects.
    pub resource: Option<ResourcePath>,
}

/// The place of objects in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath {
    /// Group and version.
    pub gv: GroupVersion,
    /// Empty for cluster-scoped resources and for lists across namespaces.
    pub namespace: String,
    /// The plural.
    pub resource: String,
    /// Empty for collections.
    pub name: String,
    /// Empty on the main path.
    pub subresource: String,
    /// What follows the subresource, as in `proxy/some/path`.
    pub rest: Vec<String>,
}

impl RequestInfo {
    /// Reads it. `query` is the text after the question mark.
    pub fn new(method: &Method, path: &str, query: &str) -> Self {
        let path = decode(path).into_owned();
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let Some((gv, mut parts)) = group_version(&segments) else { return Self::other(method, path) };
        let watch_path = parts.first() == Some(&"watch") && parts.len() > 1;
        if watch_path {
            parts = parts.get(1..).unwrap_or_default();
        }
        let Some(resource) = resource_path(gv, parts) else { return Self::other(method, path) };
        let verb = match watch_path {
            true => "watch",
            false => verb(method, resource.name.is_empty(), asks_to_watch(query)),
        };
        Self { verb, resource: Some(resource), path }
    }

    fn other(method: &Method, path: String) -> Self {
        let verb = match *method {
            Method::POST => "post",
            Method::PUT => "put",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            Method::HEAD => "head",
            Method::OPTIONS => "options",
            _ => "get",
        };
        Self { verb, path, resource: None }
    }
}

impl ResourcePath {
    /// The path with its variable parts named, as in the name of a server span.
    pub fn pattern(&self) -> String {
        let mut pattern = match self.gv.group.is_empty() {
            true => format!("/api/{}", self.gv.version),
            false => format!("/apis/{}/{}", self.gv.group, self.gv.version),
        };
        if !self.namespace.is_empty() && self.resource != "namespaces" {
            pattern.push_str("/namespaces/{:namespace}");
        }
        pattern.push('/');
        pattern.push_str(&self.resource);
        if !self.name.is_empty() {
            pattern.push_str("/{:name}");
        }
        if !self.subresource.is_empty() {
            pattern.push('/');
            pattern.push_str(&self.subresource);
        }
        pattern
    }
}

fn group_version<'a>(segments: &'a [&'a str]) -> Option<(GroupVersion, &'a [&'a str])> {
    match segments {
        ["api", version, rest @ ..] => Some((GroupVersion::new("", version), rest)),
        ["apis", group, version, rest @ ..] => Some((GroupVersion::new(group, version), rest)),
        _ => None,
    }
}

fn resource_path(gv: GroupVersion, parts: &[&str]) -> Option<ResourcePath> {
    let (namespace, parts) = match parts {
        // A namespace's own subresources, not what is in it.
        ["namespaces", name, "status" | "finalize", ..] => (*name, parts),
        ["namespaces", name, _, ..] => (*name, parts.get(2..).unwrap_or_default()),
        ["namespaces", name] => (*name, parts),
        _ => ("", parts),
    };
    let part = |index: usize| parts.get(index).map_or_else(String::new, |part| (*part).to_owned());
    let resource = parts.first().map(|resource| (*resource).to_owned())?;
    let rest = parts.get(3..).unwrap_or_default().iter().map(|part| (*part).to_owned()).collect();
    Some(ResourcePath { gv, namespace: namespace.to_owned(), resource, name: part(1), subresource: part(2), rest })
}

fn verb(method: &Method, collection: bool, watch: bool) -> &'static str {
    match (method, collection) {
        (&Method::GET | &Method::HEAD, true) if watch => "watch",
        (&Method::GET | &Method::HEAD, true) => "list",
        (&Method::GET | &Method::HEAD, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => "",
    }
}

/// Any value but `false` and `0` asks for it.
fn asks_to_watch(query: &str) -> bool {
    let mut values = query.split('&').filter_map(|pair| match pair.split_once('=') {
        Some(("watch", value)) => Some(value),
        None if pair == "watch" => Some(""),
        _ => None,
    });
    values.next().is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// Percent-decoding; what is no valid escape or no UTF-8 stays as it is.
pub fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, escape(tail)) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn escape(tail: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
    let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| hex)
}

#[cfg(test)]
mod tests;
