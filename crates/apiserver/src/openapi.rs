//! OpenAPI: a version 3 document per group version, and one small version 2 document.
//!
//! Guaranteed: every reference of a document resolves in it; documents are built when they are asked for, part by part into the
//! answer's bytes, and nothing of them is kept. Schemas of built-in types are written straight from their table, so no tree is
//! built either. The hash in a document's address changes when the document does; only hashes are kept. Assumed: the schema of a custom resource
//! is a structural one. Not done: descriptions of built-in types, the protobuf form of version 3, paths in version 2 but
//! those that old kubectl reads.

mod custom;
mod document;
mod fixed;
mod gnostic;
mod hashes;
mod names;
mod operation;
mod parameters;
mod paths;
mod types;
mod v2;

use serde_json::{Map, json};

pub use crate::discovery::Found;
use crate::{
    api::GroupVersion,
    codec::{Media, accept::header},
    discovery::{etag, groups},
    registry::Catalog,
};

/// The version whose API this is.
const VERSION: &str = "1.35";
/// The media types of version 2 in protobuf, as it is asked for and as it is answered.
const ASKED_V2: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const ANSWERED_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// How a schema is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0.
    V3,
}

impl Dialect {
    /// The address of a schema within a document.
    fn address(self, name: &str) -> String {
        match self {
            Dialect::V2 => format!("#/definitions/{name}"),
            Dialect::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// What a document of version 3 is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// The resources of a group and version.
    Resources(GroupVersion),
}

/// Answers `/openapi/v2`, `/openapi/v3` and the documents below it. None for other paths. `query` and `accept` are the request's.
pub fn answer(catalog: &Catalog, path: &str, query: &str, accept: Option<&str>) -> Option<Found> {
    let accept = accept.filter(|accept| !accept.is_empty()).unwrap_or("*/*");
    let document = match path.strip_suffix('/').unwrap_or(path) {
        "/openapi/v2" => return Some(swagger(catalog, accept)),
        "/openapi/v3" => "",
        path => path.strip_prefix("/openapi/v3/")?,
    };
    if !takes_json(accept) {
        return Some(Found::empty(406));
    }
    if document.is_empty() {
        return Some(index(catalog));
    }
    let subject = subjects(catalog).into_iter().find(|subject| subject.key() == document);
    Some(subject.map_or_else(|| Found::empty(404), |subject| subject.found(catalog, query)))
}

fn takes_json(accept: &str) -> bool {
    header::parse(accept).iter().any(|clause| clause.includes(Media::Json))
}

fn swagger(catalog: &Catalog, accept: &str) -> Found {
    let clauses = header::parse(accept);
    let form = clauses.iter().find_map(|clause| {
        let json = clause.includes(Media::Json).then_some(false);
        json.or(clause.takes(ASKED_V2).then_some(true))
    });
    let found = match form {
        Some(false) => Found::new(Media::Json.name(), v2::json(catalog)),
        Some(true) => Found::new(ANSWERED_V2, v2::protobuf(catalog)),
        None => return Found::empty(406),
    };
    Found { headers: vec![("etag", format!("\"{}\"", etag(&found.body))), ("vary", "Accept".to_owned())], ..found }
}

/// Where each document is.
fn index(catalog: &Catalog) -> Found {
    let paths: Map<_, _> = subjects(catalog)
        .into_iter()
        .map(|subject| (subject.key(), json!({ "serverRelativeURL": subject.address(&subject.hash(catalog)) })))
        .collect();
    Found::json(&json!({ "paths": paths }))
}

/// What there are documents about. Groups of custom resources have none of their own.
fn subjects(catalog: &Catalog) -> Vec<Subject> {
    let mut subjects = vec![Subject::Version, Subject::CoreVersions, Subject::Groups];
    let mut core: Vec<&GroupVersion> = catalog.all().map(|of| &of.gv).filter(|gv| gv.group.is_empty()).collect();
    core.dedup();
    subjects.extend(core.into_iter().cloned().map(Subject::Resources));
    for group in groups(catalog) {
        let custom = |gv: &&GroupVersion| catalog.of(gv).all(|resource| resource.custom.is_some());
        if !group.versions.iter().all(custom) {
            subjects.push(Subject::Group(group.name.to_owned()));
        }
        subjects.extend(group.versions.into_iter().cloned().map(Subject::Resources));
    }
    subjects
}

impl Subject {
    /// As in the address of the document: `apis/apps/v1`.
    fn key(&self) -> String {
        match self {
            Subject::Version => "version".to_owned(),
            Subject::CoreVersions => "api".to_owned(),
            Subject::Groups => "apis".to_owned(),
            Subject::Group(group) => format!("apis/{group}"),
            Subject::Resources(gv) => document::root(gv).trim_start_matches('/').to_owned(),
        }
    }

    fn address(&self, hash: &str) -> String {
        format!("/openapi/v3/{}?hash={hash}", self.key())
    }

    /// The document. Whoever asks for an older one by its hash is sent to this one.
    fn found(&self, catalog: &Catalog, query: &str) -> Found {
        let body = self.document(catalog);
        let hash = etag(&body);
        let mut headers = vec![("etag", format!("\"{hash}\""))];
        let asked = query.split('&').find_map(|pair| pair.strip_prefix("hash=")).unwrap_or_default();
        if !asked.is_empty() {
            // What an address with a hash names never changes.
            headers.push(("vary", "Accept".to_owned()));
            headers.push(("cache-control", "public, immutable, max-age=31536000".to_owned()));
        }
        if !asked.is_empty() && asked != hash {
            return Found { headers: vec![("location", self.address(&hash))], ..Found::empty(301) };
        }
        Found { headers, ..Found::new(Media::Json.name(), body) }
    }

    fn document(&self, catalog: &Catalog) -> Vec<u8> {
        match self {
            Subject::Version => fixed::version(),
            Subject::CoreVersions => fixed::core_versions(),
            Subject::Groups => fixed::groups(),
            Subject::Group(group) => fixed::group(group),
            Subject::Resources(gv) => document::write(catalog, gv),
        }
    }

    /// The hash of the document, which is not built again while its resources are the same.
    fn hash(&self, catalog: &Catalog) -> String {
        let make = || etag(&self.document(catalog));
        match self {
            Subject::Resources(gv) => hashes::of(gv, catalog.of(gv).collect(), make),
            _ => make(),
        }
    }
}

#[cfg(test)]
mod tests;
