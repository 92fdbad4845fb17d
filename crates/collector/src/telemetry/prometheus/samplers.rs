//! What samplers decided.

use kubewake_otlp::Signal;

use super::page::Page;
use crate::core::Registry;

pub(super) fn all(page: &mut Page, registry: &Registry) {
    for ((id, signal), stats) in registry.samplers() {
        // The Collector counts spans, and says traces.
        let noun = if signal == Signal::Traces { "traces" } else { "logs" };
        let name = format!("otelcol_processor_probabilistic_sampler_count_{noun}_sampled");
        let help = format!("Count of {noun} that were sampled or not [Development]");
        for (policy, decisions) in stats.all() {
            for (sampled, count) in [("true", decisions.kept()), ("false", decisions.dropped())] {
                page.counter(
                    &name,
                    &help,
                    &[("policy", &policy), ("processor", id.as_str()), ("sampled", sampled)],
                    count,
                );
            }
        }
    }
}
