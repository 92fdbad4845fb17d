//! `filter`, `attributes`, `resource` and `redaction`: what they cost beside the relay, which looks at nothing.

use super::{
    Plan,
    beside::{COLUMNS, Contender, JOIN, Rounds},
    check::Section,
    config::{Parts, forward, pipeline},
};

/// A chain of processors, and at most how much CPU beside the relay.
struct Chain {
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

/// All spans pass, so that the work is not paid for by what is not sent.
const CHAINS: [Chain; 3] = [
    Chain { name: "filter", processors: "filter", settings: "", max_ratio: 1.3 },
    Chain {
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
    Chain {
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

/// Each chain beside the relay.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "The processors named, then `batch`, between `otlp` and `otlp` over gRPC; {} spans/s to the relay and as many to the \
         collector at the same time, 100 spans a request, 10 attributes a span, {} s measured after {} s of warm-up, {} rounds. \
         No span is dropped. The relay joins {JOIN} requests to one.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = Section::new("Shaping beside the relay", how);
    section.header(&COLUMNS);
    for chain in &CHAINS {
        compare(plan, chain, &mut section)?;
    }
    Ok(section)
}

fn compare(plan: &Plan, chain: &Chain, section: &mut Section) -> anyhow::Result<()> {
    let parts = |backend: &str| Parts {
        processors: format!(
            "{}{}  batch:\n",
            if chain.processors.contains("filter") { FILTER } else { "" },
            chain.settings
        ),
        pipelines: pipeline("traces", &format!("{}, batch", chain.processors), "otlp"),
        ..forward(backend, false)
    };
    let rounds = Rounds::run(plan, &Contender { name: "shaping", gzip: false, keeps_all: true, parts: &parts })?;
    rounds.rows(chain.name, section);
    rounds.check(chain.name, chain.max_ratio, section);
    let wrong = rounds.all().map(|round| round.missing + round.doubled).sum();
    section.check_none(format!("{}: spans lost or doubled", chain.name), wrong);
    Ok(())
}
