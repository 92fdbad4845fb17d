//! The variables of this process that a workload receives.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::EnvVar;

/// Settings of endpoint, export and sampling. All other variables stay in this process.
const FORWARDED_VARIABLES: [&str; 20] = [
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

/// Endpoint variables with the protocol variable that is added where it is unset: the defaults of SDKs differ.
const PROTOCOL_VARIABLES: [(&str, &str); 2] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
];

/// The protocol for an endpoint without an explicit one, by the usual port of each protocol.
pub(crate) fn default_protocol(endpoint: &str) -> &'static str {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.ends_with(":4318") { "http/protobuf" } else { "grpc" }
}

/// The forwarded variables that are set, in the order of the list, plus the protocol that this process chose.
pub(super) fn exporter_variables(variables: impl Iterator<Item = (String, String)>) -> Vec<EnvVar> {
    let mut variables: HashMap<String, String> = variables.filter(|(_, value)| !value.trim().is_empty()).collect();
    let generic = variables.contains_key("OTEL_EXPORTER_OTLP_PROTOCOL");
    for (endpoint, protocol) in PROTOCOL_VARIABLES {
        if let Some(endpoint) = variables.get(endpoint).filter(|_| !generic) {
            let usual = default_protocol(endpoint).to_owned();
            variables.entry(protocol.to_owned()).or_insert(usual);
        }
    }
    let found = FORWARDED_VARIABLES.into_iter().filter_map(|name| Some((name, variables.get(name)?)));
    found.filter(|(_, value)| !has_password(value)).map(|(name, value)| variable(name, value.clone())).collect()
}

pub(super) fn variable(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value), ..EnvVar::default() }
}

/// Whether a URL contains user information.
fn has_password(value: &str) -> bool {
    let authority = value.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    authority.contains('@')
}
