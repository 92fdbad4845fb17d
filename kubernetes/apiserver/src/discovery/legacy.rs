//! The legacy documents: versions, groups, and the resources of a version.

use serde::Serialize;

use super::groups::{self, ServedGroup};
use crate::{
    api::GroupVersion,
    registry::{Catalog, ServedResource, Subresource},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiVersions<'c> {
    kind: &'static str,
    versions: Vec<&'c str>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_addresses: [ServerAddress; 1],
}

#[derive(Serialize)]
struct ServerAddress {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    #[serde(rename = "serverAddress")]
    server_address: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroupList<'c> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<ApiGroup<'c>>,
}

/// `/apis/{group}`, where it has a kind, and an item of `/apis`, where it has none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroup<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'c str,
    versions: Vec<ApiVersion<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_version: Option<ApiVersion<'c>>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersion<'c> {
    group_version: String,
    version: &'c str,
}

/// `/api/v1`, `/apis/{group}/{version}`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiResourceList<'c> {
    kind: &'static str,
    /// Absent in the core group's document.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ApiResource<'c>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'c> {
    name: String,
    singular_name: &'c str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'c str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'c str,
    kind: &'c str,
    verbs: &'c [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<&'c str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    storage_version_hash: &'c str,
}

/// The versions of the core group.
pub(super) fn versions(catalog: &Catalog) -> ApiVersions<'_> {
    let core = catalog.all().filter(|resource| resource.gv.group.is_empty());
    let mut versions: Vec<&str> = core.map(|resource| &*resource.gv.version).collect();
    versions.dedup();
    let everyone = ServerAddress { client_cidr: "0.0.0.0/0", server_address: "" };
    ApiVersions { kind: "APIVersions", versions, server_addresses: [everyone] }
}

pub(super) fn groups(catalog: &Catalog) -> ApiGroupList<'_> {
    let groups = groups::groups(catalog).iter().map(ApiGroup::new).collect();
    ApiGroupList { kind: "APIGroupList", api_version: "v1", groups }
}

pub(super) fn group<'c>(catalog: &'c Catalog, name: &str) -> Option<ApiGroup<'c>> {
    let group = groups::find(catalog, name)?;
    Some(ApiGroup { kind: Some("APIGroup"), api_version: Some("v1"), ..ApiGroup::new(&group) })
}

pub(super) fn resources<'c>(catalog: &'c Catalog, gv: &GroupVersion) -> Option<ApiResourceList<'c>> {
    let mut resources = Vec::new();
    for resource in catalog.resources_of_version(gv) {
        resources.push(ApiResource::new(resource));
        resources.extend(resource.subresources.iter().map(|sub| ApiResource::part(resource, sub)));
    }
    let api_version = (!gv.group.is_empty()).then_some("v1");
    let list = ApiResourceList { kind: "APIResourceList", api_version, group_version: gv.to_string(), resources };
    (!list.resources.is_empty()).then_some(list)
}

impl<'c> ApiGroup<'c> {
    fn new(group: &ServedGroup<'c>) -> Self {
        let version = |gv: &&'c GroupVersion| ApiVersion { group_version: gv.to_string(), version: &gv.version };
        let versions: Vec<ApiVersion<'c>> = group.versions.iter().map(version).collect();
        let preferred_version = versions.first().cloned();
        Self { kind: None, api_version: None, name: group.name, versions, preferred_version }
    }
}

impl<'c> ApiResource<'c> {
    fn new(resource: &'c ServedResource) -> Self {
        Self {
            name: resource.plural.to_string(),
            singular_name: &resource.singular,
            namespaced: resource.namespaced,
            kind: &resource.kind,
            verbs: &resource.verbs,
            short_names: resource.short_names.iter().map(AsRef::as_ref).collect(),
            categories: resource.categories.iter().map(AsRef::as_ref).collect(),
            storage_version_hash: &resource.storage_version_hash,
            ..Self::default()
        }
    }

    /// A subresource. The group and version of its kind are included only if they are not the resource's own.
    fn part(resource: &'c ServedResource, sub: &'c Subresource) -> Self {
        let (group, version) = sub.gv.as_ref().map_or(("", ""), |gv| (&*gv.group, &*gv.version));
        Self {
            name: format!("{}/{}", resource.plural, sub.name),
            namespaced: resource.namespaced,
            group,
            version,
            kind: &sub.kind,
            verbs: &sub.verbs,
            ..Self::default()
        }
    }
}
