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

/// Those of the list that are set, in its order.
pub(super) fn exporter(variables: impl Iterator<Item = (String, String)>) -> Vec<EnvVar> {
    let variables: HashMap<String, String> = variables.collect();
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
