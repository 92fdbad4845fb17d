//! Warnings about accepted Services: fields without effect.
//!
//! Not done: IP addresses in old notations.

use serde_json::Value;

use crate::{
    api::meta::MetaAccessor,
    kinds::json_object::{list_at, text_at},
};

const OLD_TOPOLOGY: &str = "service.kubernetes.io/topology-aware-hints";

pub(super) fn service(service: &Value) -> Vec<String> {
    let spec = |field: &str| text_at(service, &["spec", field]);
    let is_external = spec("type") == "ExternalName";
    let has_external_ips = !list_at(service, &["spec", "externalIPs"]).is_empty();
    let mut found = Vec::new();
    let mut warn = |applies: bool, text: &str| found.extend(applies.then(|| text.to_owned()));
    let annotated = service.meta("annotations").is_some_and(|annotations| annotations.get(OLD_TOPOLOGY).is_some());
    let instead = "please use service.kubernetes.io/topology-mode instead";
    warn(annotated, &format!("annotation {OLD_TOPOLOGY} is deprecated, {instead}"));
    let is_headless = spec("type") == "ClusterIP" && spec("clusterIP") == "None";
    warn(is_headless && !spec("loadBalancerIP").is_empty(), "spec.loadBalancerIP is ignored for headless services");
    warn(is_headless && has_external_ips, "spec.externalIPs is ignored for headless services");
    let has_affinity = spec("sessionAffinity") != "None";
    warn(is_headless && has_affinity, "spec.SessionAffinity is ignored for headless services");
    warn(is_external && has_external_ips, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    let has_name = !spec("externalName").is_empty();
    warn(!is_external && has_name, "spec.externalName is ignored when spec.type is not \"ExternalName\"");
    let is_close = spec("trafficDistribution") == "PreferClose";
    warn(is_close, "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    found
}
