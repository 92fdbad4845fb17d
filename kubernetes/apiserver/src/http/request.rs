//! Interprets the method, path and query of a request, as kube-apiserver does.

use std::borrow::Cow;

use http::Method;

use crate::api::GroupVersion;

/// The verb and the target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// The verb as in RBAC: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`;
    /// for non-resource paths the method in lower case.
    pub verb: &'static str,
    /// The decoded path.
    pub path: String,
    /// The target, if the request is about objects.
    pub resource: Option<ResourcePath>,
}

/// The target of a request in its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath {
    pub gv: GroupVersion,
    /// Empty for cluster-scoped resources and for lists across namespaces.
    pub namespace: String,
    pub resource: String,
    /// Empty for collections.
    pub name: String,
    /// Empty for the main path.
    pub subresource: String,
    /// The rest of the path after the subresource, as in `proxy/some/path`.
    pub rest: Vec<String>,
}

impl RequestInfo {
    /// Interprets a request. `query` is the text after the question mark.
    pub fn new(method: &Method, path: &str, query: &str) -> Self {
        let path = percent_decode(path).into_owned();
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let Some((gv, mut parts)) = group_version(&segments) else { return Self::non_resource(method, path) };
        let watch_path = parts.first() == Some(&"watch") && parts.len() > 1;
        if watch_path {
            parts = parts.get(1..).unwrap_or_default();
        }
        let Some(resource) = resource_path(gv, parts) else { return Self::non_resource(method, path) };
        let verb = if watch_path { "watch" } else { verb(method, resource.name.is_empty(), is_watch_query(query)) };
        Self { verb, resource: Some(resource), path }
    }

    fn non_resource(method: &Method, path: String) -> Self {
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
    /// The path with placeholders for its variable parts, as in the name of a server span.
    pub fn pattern(&self) -> String {
        let mut pattern = if self.gv.group.is_empty() {
            format!("/api/{}", self.gv.version)
        } else {
            format!("/apis/{}/{}", self.gv.group, self.gv.version)
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
        // A namespace's own subresources, not its content.
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

/// Any value but `false` and `0` requests a watch.
fn is_watch_query(query: &str) -> bool {
    let mut values = query.split('&').filter_map(|pair| match pair.split_once('=') {
        Some(("watch", value)) => Some(value),
        None if pair == "watch" => Some(""),
        _ => None,
    });
    values.next().is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// Percent-decoding; invalid escapes and invalid UTF-8 are kept as they are.
pub fn percent_decode(text: &str) -> Cow<'_, str> {
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
