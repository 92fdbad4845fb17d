//! `load_balancing`, `loadbalancing`.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use crate::{
    ComponentId,
    component::{ComponentSettings, ExporterSettings, PipelinePlace, PlaceProblem},
    decode::{Cursor, DecodeReport, exporter},
    model::LoadBalancingExporter,
};

impl ComponentSettings for LoadBalancingExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        exporter::load_balancing(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.otlp.tls.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.otlp.auth.iter().collect()
    }
}

impl ExporterSettings for LoadBalancingExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    /// Refuses a routing key that does not apply to the signal.
    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        let PipelinePlace { signal, id, .. } = place;
        let known: &[&str] = match signal {
            Signal::Traces | Signal::Logs => &["traceID", "service", "resource", "attributes"],
            Signal::Metrics => &["service", "resource", "metric", "streamID", "attributes"],
        };
        let unknown = self.routing.iter().map(|key| key.name()).filter(|name| !known.contains(name));
        let describe = |name: &str| {
            PlaceProblem::error(
                format!("the exporter `{id}` cannot route {signal} by `{name}`"),
                format!("`routing_key` for {signal} is one of: {}", known.join(", ")),
            )
        };
        unknown.map(describe).collect()
    }
}
