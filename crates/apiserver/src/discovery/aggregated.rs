//! Everything in one document: `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.

use serde::Serialize;

use super::{AGGREGATED, Found, etag, groups};
use crate::{
    api::GroupVersion,
    registry::{Catalog, Resource, Subresource},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'c> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'c>,
    items: Vec<Group<'c>>,
}

#[derive(Default, Serialize)]
struct Metadata<'c> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'c str,
}

#[derive(Serialize)]
struct Group<'c> {
    metadata: Metadata<'c>,
    versions: Vec<Version<'c>>,
}

#[derive(Serialize)]
struct Version<'c> {
    version: &'c str,
    resources: Vec<Served<'c>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Served<'c> {
    resource: &'c str,
    response_kind: Kind<'c>,
    scope: &'static str,
    singular_resource: &'c str,
    verbs: &'c [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Part<'c>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'c> {
    subresource: &'c str,
    response_kind: Kind<'c>,
    verbs: &'c [&'static str],
}

#[derive(Serialize)]
struct Kind<'c> {
    group: &'c str,
    version: &'c str,
    kind: &'c str,
}

/// The core group, or all others.
pub(super) fn found(catalog: &Catalog, core: bool) -> Found {
    let items = if core { core_group(catalog) } else { other_groups(catalog) };
    let metadata = Metadata::default();
    let list = List { kind: "APIGroupDiscoveryList", api_version: "apidiscovery.k8s.io/v2", metadata, items };
    let found = Found::json(&list);
    let headers = vec![("vary", "Accept".to_owned()), ("etag", format!("\"{}\"", etag(&found.body)))];
    Found { content_type: AGGREGATED, headers, ..found }
}

fn core_group(catalog: &Catalog) -> Vec<Group<'_>> {
    let mut versions: Vec<&GroupVersion> =
        catalog.all().map(|resource| &resource.gv).filter(|gv| gv.group.is_empty()).collect();
    versions.dedup();
    let versions: Vec<Version<'_>> = versions.into_iter().map(|gv| version(catalog, gv)).collect();
    if versions.is_empty() { Vec::new() } else { vec![Group { metadata: Metadata::default(), versions }] }
}

fn other_groups(catalog: &Catalog) -> Vec<Group<'_>> {
    let groups = groups::groups(catalog).into_iter();
    let described = groups.map(|group| Group {
        metadata: Metadata { name: group.name },
        versions: group.versions.iter().map(|gv| version(catalog, gv)).collect(),
    });
    described.collect()
}

fn version<'c>(catalog: &'c Catalog, gv: &'c GroupVersion) -> Version<'c> {
    let resources = catalog.of(gv).map(|resource| Served::new(resource)).collect();
    Version { version: &gv.version, resources, freshness: "Current" }
}

impl<'c> Served<'c> {
    fn new(resource: &'c Resource) -> Self {
        let part = |sub: &'c Subresource| Part {
            subresource: &sub.name,
            response_kind: Kind::new(resource, sub.gv.as_ref(), &sub.kind),
            verbs: &sub.verbs,
        };
        Self {
            resource: &resource.plural,
            response_kind: Kind::new(resource, None, &resource.kind),
            scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
            singular_resource: &resource.singular,
            verbs: &resource.verbs,
            short_names: resource.short_names.iter().map(AsRef::as_ref).collect(),
            categories: resource.categories.iter().map(AsRef::as_ref).collect(),
            subresources: resource.subresources.iter().map(part).collect(),
        }
    }
}

impl<'c> Kind<'c> {
    /// Built-in resources leave out their own group and version, custom ones name them.
    fn new(resource: &'c Resource, gv: Option<&'c GroupVersion>, kind: &'c str) -> Self {
        let own = resource.custom.is_some().then_some(&resource.gv);
        let (group, version) = gv.or(own).map_or(("", ""), |gv| (&*gv.group, &*gv.version));
        Self { group, version, kind }
    }
}
