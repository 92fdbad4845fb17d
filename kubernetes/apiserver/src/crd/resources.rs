//! Derives the served resources of a CRD.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use super::{CustomStrategy, names, structural};
use crate::{
    api::{GroupVersion, meta::MetaAccessor},
    discovery::groups::compare_versions,
    registry::{CustomResourceInfo, ScalePaths, ServedResource, Subresource},
    schema::{Schema, SchemaNode, builtin},
};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const VERBS_TERMINATING: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Identifies the versions of a CRD with their schemas.
pub fn fingerprint(crd: &Value) -> Arc<str> {
    let versions = crd.pointer("/spec/versions").map(Value::to_string).unwrap_or_default();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, versions.as_bytes());
    BASE64_STANDARD.encode(digest.as_ref()).into()
}

/// The schemas of the objects that are stored already.
#[derive(Clone, Debug)]
pub struct SchemaHistory {
    /// Objects stored after this revision follow the current schemas.
    pub since: u64,
    pub stored_before: Arc<[(u64, Arc<str>)]>,
}

impl From<u64> for SchemaHistory {
    fn from(since: u64) -> Self {
        Self { since, stored_before: Arc::from([]) }
    }
}

impl SchemaHistory {
    /// The history under a CRD with another fingerprint, which is served from this revision on.
    pub fn after_schema_change(custom: &CustomResourceInfo, crd: &Value, revision: u64) -> Self {
        let stored_now = storage_version(structural::array_field(definition_spec(crd), "versions"));
        let mut before = custom.stored_before.to_vec();
        if *custom.storage_version != *stored_now {
            before.push((revision, Arc::clone(&custom.storage_version)));
        }
        Self { since: revision, stored_before: before.into() }
    }
}

fn definition_spec(crd: &Value) -> &Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    crd.get("spec").and_then(Value::as_object).unwrap_or(&EMPTY)
}

fn storage_version(versions: &[Value]) -> &str {
    let all = versions.iter().filter_map(Value::as_object);
    let mut storage = all.filter(|version| structural::bool_field(version, "storage"));
    storage.next_back().map(|version| structural::text(version, "name")).unwrap_or_default()
}

/// The resources of a CRD, one for each served version; none before it is established.
pub fn resources(crd: &Value, history: impl Into<SchemaHistory>) -> Vec<ServedResource> {
    let spec = crd.get("spec").and_then(Value::as_object);
    let names = crd.pointer("/status/acceptedNames").and_then(Value::as_object);
    let (Some(spec), Some(names)) = (spec, names) else { return Vec::new() };
    if !names::is_condition_true(crd, "Established") {
        return Vec::new();
    }
    let versions = || structural::array_field(spec, "versions").iter().filter_map(Value::as_object);
    let schema = |version| (Arc::from(structural::text(version, "name")), Arc::new(schema(version)));
    let schemas = Arc::new(versions().map(schema).collect());
    let fingerprint = fingerprint(crd);
    let shared = VersionSchemas { schemas, fingerprint, history: history.into() };
    let served = versions().filter(|version| structural::bool_field(version, "served"));
    served.map(|version| DefinitionVersion { crd, spec, names, version, shared: &shared }.resource()).collect()
}

/// The data that all versions of a CRD share.
struct VersionSchemas {
    schemas: Arc<BTreeMap<Arc<str>, Arc<Schema>>>,
    fingerprint: Arc<str>,
    history: SchemaHistory,
}

fn schema(version: &Map<String, Value>) -> Schema {
    let openapi = version.get("schema").and_then(|schema| schema.get("openAPIV3Schema")).unwrap_or(&Value::Null);
    structural::build_schema(openapi, &object_meta())
}

fn object_meta() -> SchemaNode {
    builtin::schema_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        .map(SchemaNode::Builtin)
        .unwrap_or_default()
}

struct DefinitionVersion<'a> {
    crd: &'a Value,
    spec: &'a Map<String, Value>,
    names: &'a Map<String, Value>,
    version: &'a Map<String, Value>,
    shared: &'a VersionSchemas,
}

impl DefinitionVersion<'_> {
    fn resource(&self) -> ServedResource {
        let gv = GroupVersion::new(structural::text(self.spec, "group"), structural::text(self.version, "name"));
        let custom = Arc::new(self.custom(&gv));
        let schema = self.shared.schemas.get(&gv.version).cloned().unwrap_or_default();
        let kind = self.name("kind");
        let selectable: Vec<Arc<str>> = self.selectable().collect();
        let strategy = CustomStrategy::new(&gv, &kind, &custom, &schema, selectable.clone());
        ServedResource {
            plural: self.name("plural"),
            singular: self.name("singular"),
            list_kind: self.name("listKind"),
            namespaced: structural::text(self.spec, "scope") == "Namespaced",
            short_names: self.list("shortNames"),
            categories: self.list("categories"),
            verbs: if custom.terminating { VERBS_TERMINATING.to_vec() } else { VERBS.to_vec() },
            subresources: subresources(&custom, &kind),
            storage_version_hash: storage_hash(&gv.group, &custom.storage_version, &kind),
            schema: SchemaNode::Own(schema),
            strategy: Arc::new(strategy),
            custom: Some(custom),
            selectable,
            kind,
            gv,
        }
    }

    fn custom(&self, gv: &GroupVersion) -> CustomResourceInfo {
        let subresources = self.version.get("subresources");
        let part = |name: &str| subresources.and_then(|all| all.get(name)).filter(|part| !part.is_null());
        CustomResourceInfo {
            crd: self.crd.name().into(),
            storage_version: storage_version(structural::array_field(self.spec, "versions")).into(),
            schemas: Arc::clone(&self.shared.schemas),
            fingerprint: Arc::clone(&self.shared.fingerprint),
            schemas_since: self.shared.history.since,
            stored_before: Arc::clone(&self.shared.history.stored_before),
            has_status: part("status").is_some(),
            scale: part("scale").and_then(Value::as_object).map(scale_paths),
            columns: structural::array_field(self.version, "additionalPrinterColumns").to_vec(),
            deprecation_warning: self.deprecation(gv),
            preserve_unknown: structural::bool_field(self.spec, "preserveUnknownFields"),
            terminating: names::is_condition_true(self.crd, "Terminating") || self.crd.is_deleting(),
        }
    }

    fn deprecation(&self, gv: &GroupVersion) -> Option<Arc<str>> {
        if !structural::bool_field(self.version, "deprecated") {
            return None;
        }
        let own = self.version.get("deprecationWarning").and_then(Value::as_str).map(Into::into);
        Some(own.unwrap_or_else(|| {
            let kind = self.name("kind");
            let advice = self.successor().map(|version| format!("; use {}/{version} {kind}", gv.group));
            format!("{gv} {kind} is deprecated{}", advice.unwrap_or_default()).into()
        }))
    }

    /// The best version that is served, not deprecated, and newer than this one.
    fn successor(&self) -> Option<&str> {
        let own = structural::text(self.version, "name");
        let versions = structural::array_field(self.spec, "versions").iter().filter_map(Value::as_object);
        let fit = versions
            .filter(|version| {
                structural::bool_field(version, "served") && !structural::bool_field(version, "deprecated")
            })
            .map(|version| structural::text(version, "name"))
            .filter(|name| compare_versions(name, own).is_lt());
        fit.min_by(|a, b| compare_versions(a, b))
    }

    fn selectable(&self) -> impl Iterator<Item = Arc<str>> {
        let fields = structural::array_field(self.version, "selectableFields").iter();
        fields.filter_map(|field| field.get("jsonPath")?.as_str()).map(|path| path.trim_start_matches('.').into())
    }

    fn name(&self, field: &str) -> Arc<str> {
        structural::text(self.names, field).into()
    }

    fn list(&self, field: &str) -> Vec<Arc<str>> {
        structural::array_field(self.names, field).iter().filter_map(Value::as_str).map(Into::into).collect()
    }
}

fn scale_paths(scale: &Map<String, Value>) -> ScalePaths {
    let selector = structural::text(scale, "labelSelectorPath");
    ScalePaths {
        spec_replicas: structural::text(scale, "specReplicasPath").into(),
        status_replicas: structural::text(scale, "statusReplicasPath").into(),
        label_selector: (!selector.is_empty()).then(|| selector.into()),
    }
}

fn subresources(custom: &CustomResourceInfo, kind: &Arc<str>) -> Vec<Subresource> {
    let verbs = SUBRESOURCE_VERBS.to_vec();
    let status = custom.has_status.then(|| Subresource {
        name: "status".into(),
        kind: Arc::clone(kind),
        gv: None,
        verbs: verbs.clone(),
    });
    let scale = custom.scale.is_some().then(|| Subresource {
        name: "scale".into(),
        kind: "Scale".into(),
        gv: Some(GroupVersion::new("autoscaling", "v1")),
        verbs: verbs.clone(),
    });
    status.into_iter().chain(scale).collect()
}

/// The `storageVersionHash` in discovery, which storage migrators use.
fn storage_hash(group: &str, version: &str, kind: &str) -> Arc<str> {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, format!("{group}/{version}/{kind}").as_bytes());
    BASE64_STANDARD.encode(digest.as_ref().get(..8).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests;
