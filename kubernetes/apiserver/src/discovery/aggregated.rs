//! The aggregated document: `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.

use serde::Serialize;

use super::{AGGREGATED_MEDIA_TYPE, DiscoveryDocument, etag, groups};
use crate::{
    api::GroupVersion,
    registry::{Catalog, ServedResource, Subresource},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroupDiscoveryList<'c> {
    kind: &'static str,
    api_version: &'static str,
    metadata: GroupMetadata<'c>,
    items: Vec<ApiGroupDiscovery<'c>>,
}

#[derive(Default, Serialize)]
struct GroupMetadata<'c> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'c str,
}

#[derive(Serialize)]
struct ApiGroupDiscovery<'c> {
    metadata: GroupMetadata<'c>,
    versions: Vec<ApiVersionDiscovery<'c>>,
}

#[derive(Serialize)]
struct ApiVersionDiscovery<'c> {
    version: &'c str,
    resources: Vec<ApiResourceDiscovery<'c>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResourceDiscovery<'c> {
    resource: &'c str,
    response_kind: ResponseGroupVersionKind<'c>,
    scope: &'static str,
    singular_resource: &'c str,
    verbs: &'c [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<ApiSubresourceDiscovery<'c>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiSubresourceDiscovery<'c> {
    subresource: &'c str,
    response_kind: ResponseGroupVersionKind<'c>,
    verbs: &'c [&'static str],
}

#[derive(Serialize)]
struct ResponseGroupVersionKind<'c> {
    group: &'c str,
    version: &'c str,
    kind: &'c str,
}

/// The core group, or all others.
pub(super) fn aggregated_document(catalog: &Catalog, core: bool) -> DiscoveryDocument {
    let items = if core { core_group(catalog) } else { other_groups(catalog) };
    let metadata = GroupMetadata::default();
    let list =
        ApiGroupDiscoveryList { kind: "APIGroupDiscoveryList", api_version: "apidiscovery.k8s.io/v2", metadata, items };
    let found = DiscoveryDocument::json(&list);
    let headers = vec![("vary", "Accept".to_owned()), ("etag", format!("\"{}\"", etag(&found.body)))];
    DiscoveryDocument { content_type: AGGREGATED_MEDIA_TYPE, headers, ..found }
}

fn core_group(catalog: &Catalog) -> Vec<ApiGroupDiscovery<'_>> {
    let mut versions: Vec<&GroupVersion> =
        catalog.all().map(|resource| &resource.gv).filter(|gv| gv.group.is_empty()).collect();
    versions.dedup();
    let versions: Vec<ApiVersionDiscovery<'_>> = versions.into_iter().map(|gv| version(catalog, gv)).collect();
    if versions.is_empty() {
        Vec::new()
    } else {
        vec![ApiGroupDiscovery { metadata: GroupMetadata::default(), versions }]
    }
}

fn other_groups(catalog: &Catalog) -> Vec<ApiGroupDiscovery<'_>> {
    let groups = groups::groups(catalog).into_iter();
    let described = groups.map(|group| ApiGroupDiscovery {
        metadata: GroupMetadata { name: group.name },
        versions: group.versions.iter().map(|gv| version(catalog, gv)).collect(),
    });
    described.collect()
}

fn version<'c>(catalog: &'c Catalog, gv: &'c GroupVersion) -> ApiVersionDiscovery<'c> {
    let resources = catalog.resources_of_version(gv).map(|resource| ApiResourceDiscovery::new(resource)).collect();
    ApiVersionDiscovery { version: &gv.version, resources, freshness: "Current" }
}

impl<'c> ApiResourceDiscovery<'c> {
    fn new(resource: &'c ServedResource) -> Self {
        let part = |sub: &'c Subresource| ApiSubresourceDiscovery {
            subresource: &sub.name,
            response_kind: ResponseGroupVersionKind::new(resource, sub.gv.as_ref(), &sub.kind),
            verbs: &sub.verbs,
        };
        Self {
            resource: &resource.plural,
            response_kind: ResponseGroupVersionKind::new(resource, None, &resource.kind),
            scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
            singular_resource: &resource.singular,
            verbs: &resource.verbs,
            short_names: resource.short_names.iter().map(AsRef::as_ref).collect(),
            categories: resource.categories.iter().map(AsRef::as_ref).collect(),
            subresources: resource.subresources.iter().map(part).collect(),
        }
    }
}

impl<'c> ResponseGroupVersionKind<'c> {
    /// Built-in resources omit their own group and version, custom ones include them.
    fn new(resource: &'c ServedResource, gv: Option<&'c GroupVersion>, kind: &'c str) -> Self {
        let own = resource.custom.is_some().then_some(&resource.gv);
        let (group, version) = gv.or(own).map_or(("", ""), |gv| (&*gv.group, &*gv.version));
        Self { group, version, kind }
    }
}
