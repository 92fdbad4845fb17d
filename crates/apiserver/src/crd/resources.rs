//! What a CRD serves.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use super::{CustomStrategy, names, structural};
use crate::{
    api::{GroupVersion, meta::Meta},
    registry::{Custom, Resource, ScalePaths, Subresource},
    schema::{Node, builtin},
};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const VERBS_TERMINATING: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
const VERBS_OF_PARTS: [&str; 3] = ["get", "patch", "update"];

/// The resources of a CRD, one for each version that is served; none before it is established.
pub fn resources(crd: &Value) -> Vec<Resource> {
    let spec = crd.get("spec").and_then(Value::as_object);
    let names = crd.pointer("/status/acceptedNames").and_then(Value::as_object);
    let (Some(spec), Some(names)) = (spec, names) else { return Vec::new() };
    if !names::is_true(crd, "Established") {
        return Vec::new();
    }
    let versions = structural::array(spec, "versions").iter().filter_map(Value::as_object);
    let served = versions.filter(|version| structural::flag(version, "served"));
    served.map(|version| Definition { crd, spec, names, version }.resource()).collect()
}

/// The type of `metadata`.
fn object_meta() -> Node {
    builtin::by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").map(Node::Builtin).unwrap_or_default()
}

struct Definition<'a> {
    crd: &'a Value,
    spec: &'a Map<String, Value>,
    names: &'a Map<String, Value>,
    version: &'a Map<String, Value>,
}

impl Definition<'_> {
    fn resource(&self) -> Resource {
        let gv = GroupVersion::new(structural::text(self.spec, "group"), structural::text(self.version, "name"));
        let custom = Arc::new(self.custom(&gv));
        let openapi =
            self.version.get("schema").and_then(|schema| schema.get("openAPIV3Schema")).unwrap_or(&Value::Null);
        let schema = Arc::new(structural::build(openapi, &object_meta()));
        let kind = self.name("kind");
        let selectable: Vec<Arc<str>> = self.selectable().collect();
        let strategy = CustomStrategy::new(&gv, &kind, &custom, &schema, selectable.clone());
        Resource {
            plural: self.name("plural"),
            singular: self.name("singular"),
            list_kind: self.name("listKind"),
            namespaced: structural::text(self.spec, "scope") == "Namespaced",
            short_names: self.list("shortNames"),
            categories: self.list("categories"),
            verbs: if custom.terminating { VERBS_TERMINATING.to_vec() } else { VERBS.to_vec() },
            subresources: subresources(&custom, &kind),
            storage_version_hash: storage_hash(&gv.group, &custom.storage_version, &kind),
            schema: Node::Own(schema),
            strategy: Arc::new(strategy),
            custom: Some(custom),
            selectable,
            kind,
            gv,
        }
    }

    fn custom(&self, gv: &GroupVersion) -> Custom {
        let subresources = self.version.get("subresources");
        let part = |name: &str| subresources.and_then(|all| all.get(name)).filter(|part| !part.is_null());
        let versions = structural::array(self.spec, "versions").iter().filter_map(Value::as_object);
        let mut storage = versions
            .filter(|version| structural::flag(version, "storage"))
            .map(|version| structural::text(version, "name"));
        Custom {
            crd: self.crd.name().into(),
            storage_version: storage.next_back().unwrap_or_default().into(),
            has_status: part("status").is_some(),
            scale: part("scale").and_then(Value::as_object).map(scale_paths),
            columns: structural::array(self.version, "additionalPrinterColumns").to_vec(),
            deprecation_warning: self.deprecation(gv),
            preserve_unknown: structural::flag(self.spec, "preserveUnknownFields"),
            terminating: names::is_true(self.crd, "Terminating") || self.crd.is_deleting(),
        }
    }

    fn deprecation(&self, gv: &GroupVersion) -> Option<Arc<str>> {
        if !structural::flag(self.version, "deprecated") {
            return None;
        }
        let own = self.version.get("deprecationWarning").and_then(Value::as_str).map(Into::into);
        Some(own.unwrap_or_else(|| format!("{gv} {} is deprecated", self.name("kind")).into()))
    }

    fn selectable(&self) -> impl Iterator<Item = Arc<str>> {
        let fields = structural::array(self.version, "selectableFields").iter();
        fields.filter_map(|field| field.get("jsonPath")?.as_str()).map(|path| path.trim_start_matches('.').into())
    }

    fn name(&self, field: &str) -> Arc<str> {
        structural::text(self.names, field).into()
    }

    fn list(&self, field: &str) -> Vec<Arc<str>> {
        structural::array(self.names, field).iter().filter_map(Value::as_str).map(Into::into).collect()
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

fn subresources(custom: &Custom, kind: &Arc<str>) -> Vec<Subresource> {
    let verbs = VERBS_OF_PARTS.to_vec();
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

/// What discovery tells storage migrators: a hash of what objects are stored as.
fn storage_hash(group: &str, version: &str, kind: &str) -> Arc<str> {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, format!("{group}/{version}/{kind}").as_bytes());
    BASE64_STANDARD.encode(digest.as_ref().get(..8).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests;
