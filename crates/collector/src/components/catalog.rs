//! The table of all components, and which of them this build has.

use kubewake_config::model;

use super::BuildError;

/// A component: its name in documents, with an older name after it, and its cargo feature.
struct CatalogEntry {
    name: &'static str,
    feature: &'static str,
    is_compiled: bool,
}

macro_rules! component {
    ($name:literal, $feature:literal) => {
        CatalogEntry { name: $name, feature: $feature, is_compiled: cfg!(feature = $feature) }
    };
}

const RECEIVERS: [CatalogEntry; 2] =
    [component!("otlp", "receiver-otlp"), component!("opencensus", "receiver-opencensus")];

const PROCESSORS: [CatalogEntry; 9] = [
    component!("batch", "processor-batch"),
    component!("memory_limiter", "processor-memory-limiter"),
    component!("filter", "processor-filter"),
    component!("attributes", "processor-attributes"),
    component!("resource", "processor-attributes"),
    component!("redaction", "processor-redaction"),
    component!("probabilistic_sampler", "processor-probabilistic-sampler"),
    component!("tail_sampling", "processor-tail-sampling"),
    component!("k8s_attributes (k8sattributes)", "processor-k8sattributes"),
];

const EXPORTERS: [CatalogEntry; 6] = [
    component!("otlp (otlp_grpc)", "exporter-otlp"),
    component!("otlphttp (otlp_http)", "exporter-otlphttp"),
    component!("debug", "exporter-debug"),
    component!("file", "exporter-file"),
    component!("nop", "exporter-nop"),
    component!("load_balancing (loadbalancing)", "exporter-loadbalancing"),
];

const EXTENSIONS: [CatalogEntry; 4] = [
    component!("health_check", "extension-health-check"),
    component!("basicauth", "extension-auth"),
    component!("bearertokenauth", "extension-auth"),
    component!("oauth2client", "extension-auth"),
];

/// The components of this build, one line for each kind.
pub fn list_components() -> String {
    let line = |kind: &str, all: &[CatalogEntry]| {
        let here: Vec<&str> =
            all.iter().filter(|component| component.is_compiled).map(|component| component.name).collect();
        format!("{kind}: {}\n", here.join(", "))
    };
    [
        line("receivers", &RECEIVERS),
        line("processors", &PROCESSORS),
        line("exporters", &EXPORTERS),
        line("extensions", &EXTENSIONS),
    ]
    .concat()
}

/// Returns an error if this build lacks the processor.
pub(super) fn require_processor(settings: &model::ProcessorConfig) -> Result<(), BuildError> {
    require_compiled(
        &PROCESSORS,
        match settings {
            model::ProcessorConfig::Batch(_) => "batch",
            model::ProcessorConfig::MemoryLimiter(_) => "memory_limiter",
            model::ProcessorConfig::Filter(_) => "filter",
            model::ProcessorConfig::Attributes(_) => "attributes",
            model::ProcessorConfig::Resource(_) => "resource",
            model::ProcessorConfig::Redaction(_) => "redaction",
            model::ProcessorConfig::ProbabilisticSampler(_) => "probabilistic_sampler",
            model::ProcessorConfig::TailSampling(_) => "tail_sampling",
            model::ProcessorConfig::KubernetesAttributes(_) => "k8s_attributes",
        },
    )
}

fn require_compiled(all: &[CatalogEntry], name: &str) -> Result<(), BuildError> {
    let called = |component: &&CatalogEntry| component.name.split(' ').next() == Some(name);
    match all.iter().find(called).filter(|component| !component.is_compiled) {
        None => Ok(()),
        Some(CatalogEntry { feature, .. }) => Err(missing_feature_error(&format!("`{name}`"), feature)),
    }
}

/// The error for a component that is not compiled in.
pub(super) fn missing_feature_error(what: &str, feature: &str) -> BuildError {
    BuildError(format!("{what} is not part of this build; it comes with the cargo feature `{feature}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_with_the_feature_that_brings_it() {
        let all = [
            CatalogEntry { name: "gone (old)", feature: "some-feature", is_compiled: false },
            component!("otlp", "receiver-otlp"),
        ];
        let error = require_compiled(&all, "gone").unwrap_err().to_string();
        assert_eq!(error, "`gone` is not part of this build; it comes with the cargo feature `some-feature`");
        assert!(require_compiled(&all, "otlp").is_ok());
    }
}
