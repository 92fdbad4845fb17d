//! `filter`, `attributes`, `resource` and `redaction`: their cost, compared with the relay, which does not
//! decode spans.

use super::{
    BenchPlan,
    config::{DocumentParts, forward_parts, pipeline_yaml},
    section::BenchSection,
    side_by_side::{COLUMNS, CollectorCandidate, MeasuredRounds, RELAY_JOIN_COUNT},
};

/// A chain of processors, and the limit of its CPU time as a ratio to the relay.
struct ProcessorChain {
    name: &'static str,
    processors: &'static str,
    settings: &'static str,
    max_ratio: f64,
}

const FILTER: &str = "  filter:
    spans:
      exclude:
        match_type: regexp
        span_names: ['^/(healthz|livez|readyz)$']
        attributes: [{key: http.route, value: '^/internal/'}]
";

/// All spans pass, so that dropped spans do not offset the cost.
const CHAINS: [ProcessorChain; 3] = [
    ProcessorChain { name: "filter", processors: "filter", settings: "", max_ratio: 1.3 },
    ProcessorChain {
        name: "filter, attributes, resource",
        processors: "filter, attributes, resource",
        settings: "  attributes:
    actions:
      - {key: deployment.environment, value: production, action: insert}
      - {key: user_agent.original, action: delete}
  resource:
    attributes:
      - {key: k8s.cluster.name, value: here, action: upsert}
",
        max_ratio: 2.0,
    },
    ProcessorChain {
        name: "redaction",
        processors: "redaction",
        settings: "  redaction:
    allow_all_keys: true
    blocked_key_patterns: ['(?i)token', '(?i)api.?key']
    blocked_values: ['4[0-9]{12}(?:[0-9]{3})?', '[a-z.]+@[a-z.]+']
",
        max_ratio: 3.0,
    },
];

/// Measures each chain beside the relay.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "Each pipeline has the named processors and `batch` between `otlp` and `otlp` over gRPC. The relay and the \
         collector each receive {} spans/s at the same time, with 100 spans a request and 10 attributes a span. A \
         round measures {} s after {} s of warm-up, and there are {} rounds. No span is dropped. The relay joins \
         {RELAY_JOIN_COUNT} requests to one.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = BenchSection::new("Shaping beside the relay", how);
    section.header(&COLUMNS);
    for chain in &CHAINS {
        compare(plan, chain, &mut section)?;
    }
    Ok(section)
}

fn compare(plan: &BenchPlan, chain: &ProcessorChain, section: &mut BenchSection) -> anyhow::Result<()> {
    let parts = |backend: &str| DocumentParts {
        processors: format!(
            "{}{}  batch:\n",
            if chain.processors.contains("filter") { FILTER } else { "" },
            chain.settings
        ),
        pipelines: pipeline_yaml("traces", &format!("{}, batch", chain.processors), "otlp"),
        ..forward_parts(backend, false)
    };
    let rounds = MeasuredRounds::run(
        plan,
        &CollectorCandidate { name: "shaping", gzip: false, keeps_all: true, parts: &parts },
    )?;
    rounds.add_rows(chain.name, section);
    rounds.check_against_relay(chain.name, chain.max_ratio, section);
    let wrong = rounds.all_rounds().map(|round| round.missing + round.duplicates).sum();
    section.check_none(format!("{}: spans lost or doubled", chain.name), wrong);
    Ok(())
}
