//! `k8s_attributes` and `filter`: the cost of adding pod metadata to each resource, and of examining each span.

use std::{fmt::Write as _, fs};

use anyhow::Context;

use super::{
    BenchPlan,
    cluster_stub::ClusterStub,
    config::{DocumentParts, forward_parts, pipeline_yaml},
    directory,
    section::BenchSection,
    side_by_side::{COLUMNS, CollectorCandidate, MeasuredRounds, RELAY_JOIN_COUNT},
};

/// Limit of the CPU time as a ratio to the relay.
const MAX_RATIO: f64 = 2.0;
/// Pods in the cache, one of which is the sender.
const PODS: usize = 5000;

/// Measures relay and collector side by side.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "The pipeline is `otlp → k8s_attributes → filter → batch → otlp` over gRPC. The relay and the collector each \
         receive {} spans/s at the same time, with 100 spans a request and 10 attributes a span. A round measures {} s \
         after {} s of warm-up, and there are {} rounds. The collector knows {PODS} pods, adds seven attributes to \
         each resource, and checks and keeps each span. The relay joins {RELAY_JOIN_COUNT} requests to one.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = BenchSection::new("Kubernetes metadata and a filter beside the relay", how);
    section.header(&COLUMNS);
    let stub = ClusterStub::start(PODS)?;
    let kubeconfig = directory().join("enrich.kubeconfig");
    fs::write(&kubeconfig, stub.kubeconfig()).context("failed to write the kubeconfig")?;
    let parts = |backend: &str| {
        let mut processors = String::from("  batch:\n");
        let _ = write!(
            processors,
            "  k8s_attributes:\n    auth_type: kubeConfig\n    kube_config_path: {}\n    wait_for_metadata: true\n    \
             extract:\n      labels: [{{tag_name: team, key: team}}]\n  \
             filter:\n    spans:\n      exclude:\n        match_type: strict\n        span_names: [health]\n",
            kubeconfig.display()
        );
        let pipelines = pipeline_yaml("traces", "k8s_attributes, filter, batch", "otlp");
        DocumentParts { processors, pipelines, ..forward_parts(backend, false) }
    };
    let rounds =
        MeasuredRounds::run(plan, &CollectorCandidate { name: "enrich", gzip: false, keeps_all: true, parts: &parts })?;
    rounds.add_rows("enriched", &mut section);
    rounds.check_against_relay("enriched", MAX_RATIO, &mut section);
    let wrong = rounds.all_rounds().map(|round| round.missing + round.duplicates).sum();
    section.check_none("spans lost or doubled", wrong);
    Ok(section)
}
