//! Which components there are, and which of them this build has.

use kubewake_config::model;

use super::BuildError;

/// A component: its name in documents, with an older one behind it, and the cargo feature that it comes with.
struct Component {
    name: &'static str,
    feature: &'static str,
    here: bool,
}

macro_rules! component {
    ($name:literal, $feature:literal) => {
        Component { name: $name, feature: $feature, here: cfg!(feature = $feature) }
    };
}

const RECEIVERS: [Component; 2] =
    [component!("otlp", "receiver-otlp"), component!("opencensus", "receiver-opencensus")];

const PROCESSORS: [Component; 9] = [
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

const EXPORTERS: [Component; 6] = [
    component!("otlp (otlp_grpc)", "exporter-otlp"),
    component!("otlphttp (otlp_http)", "exporter-otlphttp"),
    component!("debug", "exporter-debug"),
    component!("file", "exporter-file"),
    component!("nop", "exporter-nop"),
    component!("load_balancing (loadbalancing)", "exporter-loadbalancing"),
];

const EXTENSIONS: [Component; 4] = [
    component!("health_check", "extension-health-check"),
    component!("basicauth", "extension-auth"),
    component!("bearertokenauth", "extension-auth"),
    component!("oauth2client", "extension-auth"),
];

/// The components of this build, a line for each kind.
pub fn listing() -> String {
    let line = |kind: &str, all: &[Component]| {
        let here: Vec<&str> = all.iter().filter(|component| component.here).map(|component| component.name).collect();
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

/// Whether this build has the processor.
pub(super) fn has_processor(settings: &model::Processor) -> Result<(), BuildError> {
    require(
        &PROCESSORS,
        match settings {
            model::Processor::Batch(_) => "batch",
            model::Processor::MemoryLimiter(_) => "memory_limiter",
            model::Processor::Filter(_) => "filter",
            model::Processor::Attributes(_) => "attributes",
            model::Processor::Resource(_) => "resource",
            model::Processor::Redaction(_) => "redaction",
            model::Processor::ProbabilisticSampler(_) => "probabilistic_sampler",
            model::Processor::TailSampling(_) => "tail_sampling",
            model::Processor::KubernetesAttributes(_) => "k8s_attributes",
        },
    )
}

fn require(all: &[Component], name: &str) -> Result<(), BuildError> {
    let called = |component: &&Component| component.name.split(' ').next() == Some(name);
    match all.iter().find(called).filter(|component| !component.here) {
        None => Ok(()),
        Some(Component { feature, .. }) => Err(left_out(&format!("`{name}`"), feature)),
    }
}

/// Why something cannot be built that is not here.
pub(super) fn left_out(what: &str, feature: &str) -> BuildError {
    BuildError(format!("{what} is not part of this build; it comes with the cargo feature `{feature}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_with_the_feature_that_brings_it() {
        let all = [
            Component { name: "gone (old)", feature: "some-feature", here: false },
            component!("otlp", "receiver-otlp"),
        ];
        let error = require(&all, "gone").unwrap_err().to_string();
        assert_eq!(error, "`gone` is not part of this build; it comes with the cargo feature `some-feature`");
        assert!(require(&all, "otlp").is_ok());
    }
}
