//! Decodes the settings of `k8s_attributes`.

use super::{
    AssociationSource, ClusterAuth, ExtractFrom, ExtractKey, Field, FieldExtract, KubernetesAttributesProcessor,
    PodFilter, RelayServiceAccount, VerifySenders,
};
use crate::{
    RegexPattern,
    decode::{Cursor, DecodeReport, FieldReader, scalar, value},
    service_account::ServiceAccountFiles,
};

/// The Collector's limit for one association.
const MAX_ASSOCIATION_SOURCES: usize = 4;

/// `k8s_attributes`, `k8sattributes`
pub(super) fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<KubernetesAttributesProcessor> {
    let default = KubernetesAttributesProcessor::default();
    let mut fields = FieldReader::new(at, report);
    let auth = auth(&mut fields);
    let passthrough = fields.flag("passthrough");
    let extract = fields.find("extract");
    let extracted = extract.map_or_else(ExtractSection::default, |at| ExtractSection::read(&at, report));
    let filter = fields.get("filter", filter).unwrap_or_default();
    let associations = fields.find("pod_association").map(|at| associations(&at, report)).unwrap_or_default();
    let exclude = match fields.find("exclude") {
        Some(at) => exclude(&at, report),
        None => default.exclude,
    };
    let waits = fields.flag("wait_for_metadata");
    let timeout =
        fields.get_or("wait_for_metadata_timeout", KubernetesAttributesProcessor::DEFAULT_WAIT, scalar::duration);
    let grace = fields.get_or("pod_delete_grace_period", default.grace, scalar::duration);
    let verify_senders = fields.find_even_empty("verify_senders").map(|at| verify_senders(&at, report));
    if passthrough && verify_senders.is_some() {
        let help = "remove one of them: `passthrough` sends no requests to the Kubernetes API";
        report.error(at, "`verify_senders` and `passthrough` cannot both be set", Some(help.into()));
    }
    fields.accept_without_effect(&["watch_sync_period"], scalar::duration);
    fields.accept_without_effect(&["kube_api_qps"], scalar::float);
    fields.accept_without_effect(&["kube_api_burst"], scalar::integer);
    fields.finish();
    Some(KubernetesAttributesProcessor {
        auth,
        service_account: ServiceAccountFiles::located_by(|path| report.locate(path)),
        passthrough,
        metadata: extracted.metadata,
        labels: extracted.labels,
        annotations: extracted.annotations,
        deployment_by_name: extracted.deployment_by_name,
        filter,
        associations,
        exclude,
        wait: waits.then_some(timeout),
        grace,
        verify_senders,
    })
}

fn verify_senders(at: &Cursor<'_>, report: &DecodeReport) -> VerifySenders {
    let mut fields = FieldReader::new(at, report);
    let relays = fields.get("trusted_relays", |at, report| match at.items() {
        Some(items) => Some(items.filter_map(|item| trusted_relay(&item, report)).collect()),
        None => scalar::wrong_type(at, report, "a list", None),
    });
    fields.finish();
    VerifySenders { trusted_relays: relays.unwrap_or_default() }
}

fn trusted_relay(at: &Cursor<'_>, report: &DecodeReport) -> Option<RelayServiceAccount> {
    let mut fields = FieldReader::new(at, report);
    let namespace = fields.text("namespace");
    let service_account = fields.text("service_account");
    for (name, given) in [("namespace", &namespace), ("service_account", &service_account)] {
        if given.is_none() {
            fields.require(name, "a relay needs `namespace` and `service_account`", None);
        }
    }
    fields.finish();
    Some(RelayServiceAccount { namespace: namespace?, service_account: service_account? })
}

fn auth(fields: &mut FieldReader<'_, '_>) -> ClusterAuth {
    const TYPES: [(&str, Option<u8>); 4] =
        [("serviceAccount", Some(0)), ("kubeConfig", Some(1)), ("none", Some(2)), ("tls", None)];
    let path = fields.path("kube_config_path");
    let context = fields.text("context");
    let kind = fields.find("auth_type").map(|at| {
        let kind = scalar::keyword(&at, fields.report, &TYPES);
        if kind == Some(None) {
            let help = "use `serviceAccount`, or `kubeConfig` with a client certificate in the kubeconfig";
            fields.report.error(&at, "`auth_type: tls` is not supported by this build", Some(help.into()));
        }
        kind.flatten()
    });
    match kind.flatten() {
        Some(1) => ClusterAuth::KubeConfig { path, context },
        Some(2) => ClusterAuth::None,
        _ => ClusterAuth::ServiceAccount,
    }
}

struct ExtractSection {
    metadata: Vec<Field>,
    labels: Vec<FieldExtract>,
    annotations: Vec<FieldExtract>,
    deployment_by_name: bool,
}

impl Default for ExtractSection {
    fn default() -> Self {
        let metadata = Field::DEFAULT_FIELDS.to_vec();
        Self { metadata, labels: Vec::new(), annotations: Vec::new(), deployment_by_name: true }
    }
}

impl ExtractSection {
    fn read(at: &Cursor<'_>, report: &DecodeReport) -> Self {
        let default = Self::default();
        let mut fields = FieldReader::new(at, report);
        let known: Vec<(&str, Field)> = Field::ALL.iter().map(|field| (field.name(), *field)).collect();
        let metadata = fields.get("metadata", |at, report| match at.items() {
            Some(items) => Some(items.filter_map(|item| scalar::keyword(&item, report, &known)).collect()),
            None => scalar::wrong_type(at, report, "a list", None),
        });
        let mut extracted = Self {
            metadata: metadata.unwrap_or(default.metadata),
            labels: fields.find("labels").map(|at| extracts(&at, report)).unwrap_or_default(),
            annotations: fields.find("annotations").map(|at| extracts(&at, report)).unwrap_or_default(),
            deployment_by_name: fields.get_or("deployment_name_from_replicaset", true, scalar::boolean),
        };
        if fields.flag("otel_annotations") {
            extracted.annotations.extend(otel_annotations());
        }
        fields.finish();
        extracted
    }
}

fn otel_annotations() -> Option<FieldExtract> {
    let pattern = RegexPattern::new("^(?:resource\\.opentelemetry\\.io/(.+))$").ok()?;
    Some(FieldExtract { tag: Some("$1".into()), key: ExtractKey::Matching(pattern), from: ExtractFrom::Pod })
}

fn extracts(at: &Cursor<'_>, report: &DecodeReport) -> Vec<FieldExtract> {
    let Some(items) = at.items() else { return scalar::wrong_type(at, report, "a list", None).unwrap_or_default() };
    items.filter_map(|item| extract(&item, report)).collect()
}

pub(super) const OWNERS: [(&str, ExtractFrom); 7] = [
    ("pod", ExtractFrom::Pod),
    ("namespace", ExtractFrom::Namespace),
    ("node", ExtractFrom::Node),
    ("deployment", ExtractFrom::Deployment),
    ("statefulset", ExtractFrom::StatefulSet),
    ("daemonset", ExtractFrom::DaemonSet),
    ("job", ExtractFrom::Job),
];

fn extract(at: &Cursor<'_>, report: &DecodeReport) -> Option<FieldExtract> {
    let mut fields = FieldReader::new(at, report);
    let tag = fields.text("tag_name");
    let key = fields.text("key");
    let place = fields.find("key_regex").filter(|at| scalar::text(at, report).is_some_and(|text| !text.is_empty()));
    let pattern = place.as_ref().map(|at| value::pattern(at, report));
    let from = fields.get_or("from", ExtractFrom::Pod, |at, report| scalar::keyword(at, report, &OWNERS));
    fields.unsupported(&["regex"]);
    let key = match (key, pattern) {
        (Some(key), None) => Some(ExtractKey::Exact(key)),
        // The whole key must match. An expression that compiles by itself also compiles with anchors.
        (None, Some(pattern)) => {
            let whole = pattern.and_then(|pattern| RegexPattern::new(&anchored(pattern.as_str())).ok());
            whole.map(ExtractKey::Matching)
        }
        (Some(_), Some(_)) => {
            let help = "remove one of them";
            report.error(at, "`key` and `key_regex` cannot both be set", Some(help.into()));
            None
        }
        (None, None) => {
            fields.require("key", "`key` or `key_regex` must be set", None);
            None
        }
    };
    fields.finish();
    Some(FieldExtract { tag, key: key?, from })
}

const ANCHORED_START: &str = "^(?:";
const ANCHORED_END: &str = ")$";

fn anchored(pattern: &str) -> String {
    format!("{ANCHORED_START}{pattern}{ANCHORED_END}")
}

/// The pattern that was anchored.
pub(super) fn strip_anchors(pattern: &str) -> &str {
    let inner = pattern.strip_prefix(ANCHORED_START).and_then(|rest| rest.strip_suffix(ANCHORED_END));
    inner.unwrap_or(pattern)
}

fn filter(at: &Cursor<'_>, report: &DecodeReport) -> Option<PodFilter> {
    let mut fields = FieldReader::new(at, report);
    let filter = PodFilter {
        node: fields.text("node"),
        node_from_env_var: fields.text("node_from_env_var"),
        namespace: fields.text("namespace"),
        fields: fields.find("fields").map(|at| selector(&at, report, false)).unwrap_or_default(),
        labels: fields.find("labels").map(|at| selector(&at, report, true)).unwrap_or_default(),
    };
    fields.finish();
    Some(filter)
}

/// Converts a list of `{key, value, op}` to a Kubernetes selector.
fn selector(at: &Cursor<'_>, report: &DecodeReport, labels: bool) -> String {
    let Some(items) = at.items() else { return scalar::wrong_type(at, report, "a list", None).unwrap_or_default() };
    items.filter_map(|item| requirement(&item, report, labels)).collect::<Vec<_>>().join(",")
}

fn requirement(at: &Cursor<'_>, report: &DecodeReport, labels: bool) -> Option<String> {
    const OPERATIONS: [(&str, u8); 5] =
        [("", 0), ("equals", 0), ("not-equals", 1), ("exists", 2), ("does-not-exist", 3)];
    let mut fields = FieldReader::new(at, report);
    let key = fields.text("key");
    let value = fields.get("value", scalar::text).unwrap_or_default();
    let known = OPERATIONS.get(..if labels { 5 } else { 3 }).unwrap_or_default();
    let operation = fields.get_or("op", 0, |at, report| scalar::keyword(at, report, known));
    if key.is_none() {
        fields.require("key", "a filter needs a `key`", None);
    }
    fields.finish();
    let key = key?;
    // Keys and values must not contain the characters that separate requirements.
    if key.contains(|c: char| ",=!() ".contains(c)) || value.contains(|c: char| ",=!() ".contains(c)) {
        report.error(at, "the key and value of a filter must not contain `,`, `=`, `!`, spaces or parentheses", None);
        return None;
    }
    Some(match operation {
        0 => format!("{key}={value}"),
        1 => format!("{key}!={value}"),
        2 => key,
        _ => format!("!{key}"),
    })
}

fn associations(at: &Cursor<'_>, report: &DecodeReport) -> Vec<Vec<AssociationSource>> {
    let Some(items) = at.items() else { return scalar::wrong_type(at, report, "a list", None).unwrap_or_default() };
    items.filter_map(|item| association(&item, report)).collect()
}

fn association(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<AssociationSource>> {
    let mut fields = FieldReader::new(at, report);
    let place = fields.find("sources");
    let sources: Option<Vec<AssociationSource>> = match &place {
        None => {
            fields.require("sources", "an association needs `sources`", None);
            None
        }
        Some(at) => match at.items() {
            None => scalar::wrong_type(at, report, "a list", None),
            Some(items) => Some(items.filter_map(|item| source(&item, report)).collect()),
        },
    };
    if let (Some(at), Some(sources)) = (&place, &sources)
        && sources.len() > MAX_ASSOCIATION_SOURCES
    {
        report.error(at, format!("an association has at most {MAX_ASSOCIATION_SOURCES} sources"), None);
    }
    fields.finish();
    sources.filter(|sources| !sources.is_empty())
}

fn source(at: &Cursor<'_>, report: &DecodeReport) -> Option<AssociationSource> {
    let mut fields = FieldReader::new(at, report);
    let from = fields
        .get("from", |at, report| scalar::keyword(at, report, &[("connection", true), ("resource_attribute", false)]));
    let name = fields.text("name");
    if from.is_none() {
        fields.require("from", "a source needs a `from`: `connection` or `resource_attribute`", None);
    }
    if from == Some(false) && name.is_none() {
        fields.require("name", "a source of `resource_attribute` needs the `name` of the attribute", None);
    }
    fields.finish();
    if from? { Some(AssociationSource::Connection) } else { name.map(AssociationSource::Attribute) }
}

fn exclude(at: &Cursor<'_>, report: &DecodeReport) -> Vec<RegexPattern> {
    let mut fields = FieldReader::new(at, report);
    let mut patterns = Vec::new();
    if let Some(list) = fields.find("pods") {
        match list.items() {
            None => scalar::wrong_type::<()>(&list, report, "a list", None).unwrap_or_default(),
            Some(items) => patterns.extend(items.filter_map(|item| {
                let mut fields = FieldReader::new(&item, report);
                let name = fields.find("name");
                if name.is_none() {
                    fields.require("name", "a pod to exclude needs a `name`", None);
                }
                let pattern = name.and_then(|at| value::pattern(&at, report));
                fields.finish();
                pattern
            })),
        }
    }
    fields.finish();
    patterns
}
