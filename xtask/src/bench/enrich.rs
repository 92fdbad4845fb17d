//! `k8s_attributes` and `filter`: what it costs to say of each resource which pod it is, and to look at each span.

use std::{fmt::Write as _, fs};

use anyhow::Context;

use super::{
    Plan,
    beside::{COLUMNS, Contender, JOIN, Rounds},
    check::Section,
    cluster_stub::ClusterStub,
    config::{Parts, forward, pipeline},
    directory,
};

/// At most this much CPU beside the relay.
const MAX_RATIO: f64 = 2.0;
/// Pods that are known, one of which is the sender.
const PODS: usize = 5000;

/// Relay and collector side by side.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "`otlp → k8s_attributes → filter → batch → otlp` over gRPC, {} spans/s to the relay and as many to the collector at the \
         same time, 100 spans a request, 10 attributes a span, {} s measured after {} s of warm-up, {} rounds. {PODS} pods are \
         known; seven attributes are added to each resource, and each span is looked at and kept. The relay joins {JOIN} \
         requests to one.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = Section::new("Kubernetes metadata and a filter beside the relay", how);
    section.header(&COLUMNS);
    let stub = ClusterStub::start(PODS)?;
    let kubeconfig = directory().join("enrich.kubeconfig");
    fs::write(&kubeconfig, stub.kubeconfig()).context("cannot write the kubeconfig")?;
    let parts = |backend: &str| {
        let mut processors = String::from("  batch:\n");
        let _ = write!(
            processors,
            "  k8s_attributes:\n    auth_type: kubeConfig\n    kube_config_path: {}\n    wait_for_metadata: true\n    \
             extract:\n      labels: [{{tag_name: team, key: team}}]\n  \
             filter:\n    spans:\n      exclude:\n        match_type: strict\n        span_names: [health]\n",
            kubeconfig.display()
        );
        let pipelines = pipeline("traces", "k8s_attributes, filter, batch", "otlp");
        Parts { processors, pipelines, ..forward(backend, false) }
    };
    let rounds = Rounds::run(plan, &Contender { name: "enrich", gzip: false, keeps_all: true, parts: &parts })?;
    rounds.rows("enriched", &mut section);
    rounds.check("enriched", MAX_RATIO, &mut section);
    let wrong = rounds.all().map(|round| round.missing + round.doubled).sum();
    section.check_none("spans lost or doubled", wrong);
    Ok(section)
}
