//! Discovery: documents that list the served groups, versions and resources, in the legacy and in the
//! aggregated (v2) format.
//!
//! Guaranteed: the same catalog gives the same bytes; groups and versions are in kube-apiserver's order, so
//! that clients prefer the same ones. Assumed: the caller answers paths that are not found here, and encodes
//! that answer in an accepted media type. Not done: the aggregated format in protobuf (kubectl and client-go ask
//! for JSON first), and the server's address in `/api`, which clients ignore.

mod aggregated;
pub(crate) mod groups;
mod legacy;

use std::fmt::Write as _;

use aws_lc_rs::digest;
use bytes::Bytes;
use serde::Serialize;

use crate::{
    api::GroupVersion,
    codec::{MediaType, accept::header},
    registry::Catalog,
};

pub(crate) use self::groups::groups;

const JSON_MEDIA_TYPE: &str = "application/json";
const AGGREGATED_MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryDocument {
    pub status: u16,
    /// The `Content-Type`; empty where the response has none.
    pub content_type: &'static str,
    /// Further headers, with names in lower case.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

impl DiscoveryDocument {
    pub(crate) fn json(document: &impl Serialize) -> Self {
        Self::new(JSON_MEDIA_TYPE, serde_json::to_vec(document).unwrap_or_default())
    }

    pub(crate) fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status: 200, content_type, headers: Vec::new(), body: body.into() }
    }

    /// A response without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, ..Self::new("", Bytes::new()) }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The response to a conditional request: 304 if the client has this document already. `if_none_match` is
    /// the request's header.
    #[must_use]
    pub fn revalidated(self, if_none_match: Option<&str>) -> Self {
        let mut known = if_none_match.unwrap_or_default().split(',').map(|tag| tag.trim().trim_start_matches("W/"));
        if self.status == 200 && self.header("etag").is_some_and(|tag| known.any(|known| known == tag)) {
            return Self { status: 304, content_type: "", body: Bytes::new(), ..self };
        }
        self
    }
}

/// Looks up a discovery path: `/api`, `/apis`, a group, or a group and version, with or without a trailing
/// slash. None for other paths and for groups and versions that are not served. `accept` is the request's
/// header.
pub fn lookup_document(catalog: &Catalog, path: &str, accept: Option<&str>) -> Option<DiscoveryDocument> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let aggregate = || wants_aggregated(accept.unwrap_or_default());
    match path {
        "/api" if aggregate() => return Some(aggregated::aggregated_document(catalog, true)),
        "/apis" if aggregate() => return Some(aggregated::aggregated_document(catalog, false)),
        "/api" => return Some(DiscoveryDocument::json(&legacy::versions(catalog))),
        "/apis" => return Some(DiscoveryDocument::json(&legacy::groups(catalog))),
        _ => {}
    }
    if let Some(version) = path.strip_prefix("/api/") {
        return legacy::resources(catalog, &GroupVersion::new("", version)).map(|list| DiscoveryDocument::json(&list));
    }
    match path.strip_prefix("/apis/")?.split_once('/') {
        Some(("", _)) => None,
        Some((group, version)) => {
            legacy::resources(catalog, &GroupVersion::new(group, version)).map(|list| DiscoveryDocument::json(&list))
        }
        None => legacy::group(catalog, path.strip_prefix("/apis/")?).map(|group| DiscoveryDocument::json(&group)),
    }
}

/// Whether the first supported JSON form in `Accept` is the aggregated one.
fn wants_aggregated(accept: &str) -> bool {
    let clauses = header::parse(accept);
    let forms = clauses.iter().filter(|clause| clause.includes(MediaType::Json)).filter_map(|clause| {
        if !clause.transforms() {
            return Some(false);
        }
        let form = (clause.param("g")?, clause.param("v")?, clause.param("as")?);
        (form == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")).then_some(true)
    });
    forms.into_iter().next().unwrap_or_default()
}

/// A hash in kube-apiserver's format.
pub(crate) fn etag(body: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, body);
    hash.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
