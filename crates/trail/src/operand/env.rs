//! Which variables of this process a workload gets.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::EnvVar;

/// Where to and how, and which spans. What is not named here stays here.
const PASSED_ON: [&str; 20] = [
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_PROPAGATORS",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_INSECURE",
    "OTEL_EXPORTER_OTLP_TRACES_INSECURE",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
    "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_EXPORT_TIMEOUT",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
];

/// Where it is not said how to export, with what says where to: SDKs do not agree on the protocol that they take then.
const UNSAID: [(&str, &str); 2] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
];

/// The protocol for an endpoint where none is named: by the port that each of them has.
pub(crate) fn usual_protocol(endpoint: &str) -> &'static str {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.ends_with(":4318") { "http/protobuf" } else { "grpc" }
}

/// Those of the list that are set, in its order, and the protocol that this process has chosen by itself.
pub(super) fn exporter(variables: impl Iterator<Item = (String, String)>) -> Vec<EnvVar> {
    let mut variables: HashMap<String, String> = variables.filter(|(_, value)| !value.trim().is_empty()).collect();
    let generic = variables.contains_key("OTEL_EXPORTER_OTLP_PROTOCOL");
    for (endpoint, protocol) in UNSAID {
        if let Some(endpoint) = variables.get(endpoint).filter(|_| !generic) {
            let usual = usual_protocol(endpoint).to_owned();
            variables.entry(protocol.to_owned()).or_insert(usual);
        }
    }
    let found = PASSED_ON.into_iter().filter_map(|name| Some((name, variables.get(name)?)));
    found.filter(|(_, value)| !has_password(value)).map(|(name, value)| variable(name, value.clone())).collect()
}

pub(super) fn variable(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value), ..EnvVar::default() }
}

/// Whether it is an address with somebody's name in it.
fn has_password(value: &str) -> bool {
    let authority = value.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    authority.contains('@')
}
