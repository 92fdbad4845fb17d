//! OpenAPI: a version 3 document per group version, and one small version 2 document.
//!
//! Guaranteed: every reference of a document resolves in it. Documents are built on request, part by part into
//! the bytes of the response, and are not kept; only their hashes are. Schemas of built-in types are written
//! straight from their table, without building a tree. The hash in a document's address changes when the
//! document does. Assumed: the schema of a custom resource is structural. Not done: descriptions of built-in
//! types, the protobuf form of version 3, and the paths of version 2 except those that old kubectl reads.

mod custom;
mod discovery_documents;
mod document;
mod gnostic;
mod hash_cache;
mod names;
mod operation;
mod parameters;
mod paths;
mod types;
mod v2;

use serde_json::{Map, json};

pub use crate::discovery::DiscoveryDocument;
use crate::{
    api::GroupVersion,
    codec::{MediaType, accept::header},
    discovery::{etag, groups},
    registry::Catalog,
};

/// The Kubernetes version whose API is served.
const KUBERNETES_VERSION: &str = "1.35";
/// The media types of version 2 in protobuf, as requested and as answered.
const V2_PROTOBUF_ACCEPT: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const V2_PROTOBUF_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The format of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchemaDialect {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0.
    V3,
}

impl SchemaDialect {
    /// The reference to a schema within a document.
    fn address(self, name: &str) -> String {
        match self {
            SchemaDialect::V2 => format!("#/definitions/{name}"),
            SchemaDialect::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// The subject of a version 3 document.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DocumentSubject {
    Version,
    CoreVersions,
    Groups,
    Group(String),
    /// The resources of a group and version.
    Resources(GroupVersion),
}

/// Looks up `/openapi/v2`, `/openapi/v3` and the documents below it. None for other paths. `query` and `accept`
/// are the request's.
pub fn lookup_document(catalog: &Catalog, path: &str, query: &str, accept: Option<&str>) -> Option<DiscoveryDocument> {
    let accept = accept.filter(|accept| !accept.is_empty()).unwrap_or("*/*");
    let document = match path.strip_suffix('/').unwrap_or(path) {
        "/openapi/v2" => return Some(swagger(catalog, accept)),
        "/openapi/v3" => "",
        path => path.strip_prefix("/openapi/v3/")?,
    };
    if !takes_json(accept) {
        return Some(DiscoveryDocument::empty(406));
    }
    if document.is_empty() {
        return Some(index(catalog));
    }
    let subject = subjects(catalog).into_iter().find(|subject| subject.key() == document);
    Some(subject.map_or_else(|| DiscoveryDocument::empty(404), |subject| subject.response(catalog, query)))
}

fn takes_json(accept: &str) -> bool {
    header::parse(accept).iter().any(|clause| clause.includes(MediaType::Json))
}

fn swagger(catalog: &Catalog, accept: &str) -> DiscoveryDocument {
    let clauses = header::parse(accept);
    let form = clauses.iter().find_map(|clause| {
        let json = clause.includes(MediaType::Json).then_some(false);
        json.or(clause.accepts_media_type(V2_PROTOBUF_ACCEPT).then_some(true))
    });
    let found = match form {
        Some(false) => DiscoveryDocument::new(MediaType::Json.name(), v2::json(catalog)),
        Some(true) => DiscoveryDocument::new(V2_PROTOBUF_CONTENT_TYPE, v2::protobuf(catalog)),
        None => return DiscoveryDocument::empty(406),
    };
    DiscoveryDocument {
        headers: vec![("etag", format!("\"{}\"", etag(&found.body))), ("vary", "Accept".to_owned())],
        ..found
    }
}

fn index(catalog: &Catalog) -> DiscoveryDocument {
    let paths: Map<_, _> = subjects(catalog)
        .into_iter()
        .map(|subject| (subject.key(), json!({ "serverRelativeURL": subject.address(&subject.hash(catalog)) })))
        .collect();
    DiscoveryDocument::json(&json!({ "paths": paths }))
}

/// The subjects of all documents. A group that has only custom resources has no group document.
fn subjects(catalog: &Catalog) -> Vec<DocumentSubject> {
    let mut subjects = vec![DocumentSubject::Version, DocumentSubject::CoreVersions, DocumentSubject::Groups];
    let mut core: Vec<&GroupVersion> = catalog.all().map(|of| &of.gv).filter(|gv| gv.group.is_empty()).collect();
    core.dedup();
    subjects.extend(core.into_iter().cloned().map(DocumentSubject::Resources));
    for group in groups(catalog) {
        let custom = |gv: &&GroupVersion| catalog.resources_of_version(gv).all(|resource| resource.custom.is_some());
        if !group.versions.iter().all(custom) {
            subjects.push(DocumentSubject::Group(group.name.to_owned()));
        }
        subjects.extend(group.versions.into_iter().cloned().map(DocumentSubject::Resources));
    }
    subjects
}

impl DocumentSubject {
    /// The subject in the address of its document: `apis/apps/v1`.
    fn key(&self) -> String {
        match self {
            DocumentSubject::Version => "version".to_owned(),
            DocumentSubject::CoreVersions => "api".to_owned(),
            DocumentSubject::Groups => "apis".to_owned(),
            DocumentSubject::Group(group) => format!("apis/{group}"),
            DocumentSubject::Resources(gv) => document::root(gv).trim_start_matches('/').to_owned(),
        }
    }

    fn address(&self, hash: &str) -> String {
        format!("/openapi/v3/{}?hash={hash}", self.key())
    }

    /// The document. A request for an older one by its hash is redirected to this one.
    fn response(&self, catalog: &Catalog, query: &str) -> DiscoveryDocument {
        let body = self.document(catalog);
        let hash = etag(&body);
        let mut headers = vec![("etag", format!("\"{hash}\""))];
        let asked = query.split('&').find_map(|pair| pair.strip_prefix("hash=")).unwrap_or_default();
        if !asked.is_empty() {
            // The content behind an address with a hash never changes.
            headers.push(("vary", "Accept".to_owned()));
            headers.push(("cache-control", "public, immutable, max-age=31536000".to_owned()));
        }
        if !asked.is_empty() && asked != hash {
            return DiscoveryDocument {
                headers: vec![("location", self.address(&hash))],
                ..DiscoveryDocument::empty(301)
            };
        }
        DiscoveryDocument { headers, ..DiscoveryDocument::new(MediaType::Json.name(), body) }
    }

    fn document(&self, catalog: &Catalog) -> Vec<u8> {
        match self {
            DocumentSubject::Version => discovery_documents::version(),
            DocumentSubject::CoreVersions => discovery_documents::core_versions(),
            DocumentSubject::Groups => discovery_documents::groups(),
            DocumentSubject::Group(group) => discovery_documents::group(group),
            DocumentSubject::Resources(gv) => document::write(catalog, gv),
        }
    }

    /// The hash of the document, which is not built again while its resources are the same.
    fn hash(&self, catalog: &Catalog) -> String {
        let make = || etag(&self.document(catalog));
        match self {
            DocumentSubject::Resources(gv) => {
                hash_cache::document_hash(gv, catalog.resources_of_version(gv).collect(), make)
            }
            _ => make(),
        }
    }
}

#[cfg(test)]
mod tests;
