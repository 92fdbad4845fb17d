//! Writes the settings of `k8s_attributes`.

use super::{
    AssociationSource, ClusterAuth, ExtractKey, Field, FieldExtract, KubernetesAttributesProcessor, PodFilter,
    RelayServiceAccount, VerifySenders,
    settings::{OWNERS, strip_anchors},
};
use crate::{
    RegexPattern,
    encode::{YamlMap, YamlValue, keyword},
};

pub(super) fn settings(processor: &KubernetesAttributesProcessor) -> YamlMap {
    let default = KubernetesAttributesProcessor::default();
    let wait = processor.wait.filter(|wait| *wait != KubernetesAttributesProcessor::DEFAULT_WAIT);
    let exclude = Some(&processor.exclude).filter(|patterns| **patterns != default.exclude);
    auth(&processor.auth)
        .with_flag("passthrough", processor.passthrough)
        .with_flag("wait_for_metadata", processor.wait.is_some())
        .with_optional("wait_for_metadata_timeout", wait)
        .with_changed("pod_delete_grace_period", processor.grace, default.grace)
        .with_section("extract", extract(processor, &default))
        .with_section("filter", filter(&processor.filter))
        .with_list("pod_association", processor.associations.iter().map(|sources| association(sources)))
        .with_optional("exclude", exclude.map(|patterns| excluded(patterns)))
        .with_optional("verify_senders", processor.verify_senders.as_ref().map(verify_senders))
}

fn auth(auth: &ClusterAuth) -> YamlMap {
    let map = YamlMap::default();
    match auth {
        ClusterAuth::ServiceAccount => map,
        ClusterAuth::None => map.with_field("auth_type", "none"),
        ClusterAuth::KubeConfig { path, context } => map
            .with_field("auth_type", "kubeConfig")
            .with_optional("kube_config_path", path.as_deref())
            .with_optional("context", context.as_deref()),
    }
}

fn extract(processor: &KubernetesAttributesProcessor, default: &KubernetesAttributesProcessor) -> YamlMap {
    let metadata = Some(&processor.metadata).filter(|fields| **fields != default.metadata);
    let names = |fields: &Vec<Field>| YamlValue::List(fields.iter().map(|field| field.name().into()).collect());
    YamlMap::default()
        .with_optional("metadata", metadata.map(names))
        .with_list("labels", processor.labels.iter().map(field_extract))
        .with_list("annotations", processor.annotations.iter().map(field_extract))
        .with_changed("deployment_name_from_replicaset", processor.deployment_by_name, default.deployment_by_name)
}

fn field_extract(extract: &FieldExtract) -> YamlMap {
    let map = YamlMap::default().with_optional("tag_name", extract.tag.as_deref());
    let map = match &extract.key {
        ExtractKey::Exact(key) => map.with_field("key", key),
        ExtractKey::Matching(pattern) => map.with_field("key_regex", strip_anchors(pattern.as_str())),
    };
    map.with_changed("from", keyword(&OWNERS, &extract.from), "pod")
}

fn filter(filter: &PodFilter) -> YamlMap {
    YamlMap::default()
        .with_optional("node", filter.node.as_deref())
        .with_optional("node_from_env_var", filter.node_from_env_var.as_deref())
        .with_optional("namespace", filter.namespace.as_deref())
        .with_list("fields", requirements(&filter.fields))
        .with_list("labels", requirements(&filter.labels))
}

/// The requirements of a selector. The decoder keeps separators out of keys and values.
fn requirements(selector: &str) -> impl Iterator<Item = YamlMap> {
    selector.split(',').filter(|requirement| !requirement.is_empty()).map(|requirement| {
        let (key, value, operation) = match (requirement.split_once("!="), requirement.split_once('=')) {
            (Some((key, value)), _) => (key, value, "not-equals"),
            (None, Some((key, value))) => (key, value, "equals"),
            (None, None) => match requirement.strip_prefix('!') {
                Some(key) => (key, "", "does-not-exist"),
                None => (requirement, "", "exists"),
            },
        };
        YamlMap::default().with_field("key", key).with_text("value", value).with_field("op", operation)
    })
}

fn association(sources: &[AssociationSource]) -> YamlMap {
    let source = |source: &AssociationSource| match source {
        AssociationSource::Connection => YamlMap::default().with_field("from", "connection"),
        AssociationSource::Attribute(name) => {
            YamlMap::default().with_field("from", "resource_attribute").with_field("name", name)
        }
    };
    YamlMap::default().with_list("sources", sources.iter().map(source))
}

fn excluded(patterns: &[RegexPattern]) -> YamlMap {
    YamlMap::default().with_list("pods", patterns.iter().map(|name| YamlMap::default().with_field("name", name)))
}

fn verify_senders(verify: &VerifySenders) -> YamlMap {
    let relay = |relay: &RelayServiceAccount| {
        YamlMap::default()
            .with_field("namespace", &relay.namespace)
            .with_field("service_account", &relay.service_account)
    };
    YamlMap::default().with_list("trusted_relays", verify.trusted_relays.iter().map(relay))
}
