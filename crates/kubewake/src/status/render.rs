//! Renders the status on one screen.

use super::model::{CollectorOverview, InstallOverview, PipelineOverview, ViewerOverview, WorkloadOverview};
use crate::output::{
    TerminalLayout, TextStyle,
    table::{TableCell, TextTable},
    text::{sanitize, truncate},
    units::{format_age, format_bytes, format_count},
};

pub(super) fn render_status(status: &InstallOverview, screen: &TerminalLayout) -> String {
    let mut parts = vec![render_header(status, screen)];
    if !status.pipelines.is_empty() {
        parts.push(pipeline_table(&status.pipelines).render(screen));
    }
    if !status.collectors.is_empty() {
        parts.push(collector_table(&status.collectors).render(screen));
    }
    if !status.problems.is_empty() {
        parts.push(render_problems(&status.problems, screen));
    }
    parts.join("\n")
}

/// One name per line, in kubectl's notation.
pub(super) fn render_names(status: &InstallOverview) -> String {
    let workloads = [&status.operator, &status.webhook].into_iter().filter(|workload| !workload.ready.is_empty());
    let workloads = workloads.map(|workload| format!("deployment.apps/{}\n", sanitize(&workload.name)));
    let telemetry = (!["Absent", "Unknown"].contains(&status.telemetry.state.as_str()))
        .then(|| "telemetry.telemetry.kubewake.io/default\n".to_owned());
    let pipelines =
        status.pipelines.iter().map(|it| format!("{}.telemetry.kubewake.io/{}\n", it.kind, sanitize(&it.name)));
    let pods = status.collectors.iter().map(|it| format!("pod/{}\n", sanitize(&it.pod)));
    workloads.chain(telemetry).chain(pipelines).chain(pods).collect()
}

fn render_header(status: &InstallOverview, screen: &TerminalLayout) -> String {
    let cluster = &status.cluster;
    let at = match (cluster.server.is_empty(), cluster.source.is_empty()) {
        (true, _) => "none".to_owned(),
        (false, true) => cluster.server.clone(),
        (false, false) => format!("{} ({})", cluster.server, cluster.source),
    };
    let cluster = if cluster.reachable {
        (cluster.version.as_str(), TextStyle::Good, at)
    } else {
        ("Unreachable", TextStyle::Bad, at)
    };
    let telemetry = match status.telemetry.state.as_str() {
        "Absent" => "not installed, the defaults apply".to_owned(),
        _ if status.telemetry.endpoint.is_empty() => String::new(),
        _ => format!("send to {}", status.telemetry.endpoint),
    };
    let rows = [
        ("CLUSTER", cluster.0, cluster.1, cluster.2),
        ("OPERATOR", &*status.operator.state, state_style(&status.operator.state), format_operator(&status.operator)),
        ("WEBHOOK", &*status.webhook.state, state_style(&status.webhook.state), format_webhook(&status.webhook)),
        ("TELEMETRY", &*status.telemetry.state, state_style(&status.telemetry.state), telemetry),
        format_viewer(&status.viewer),
    ];
    let state = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    let line = |(name, word, tone, words): (&str, &str, TextStyle, String)| {
        let fill = " ".repeat(state.saturating_sub(word.len()));
        let words = truncate(&sanitize(&words), screen.width.saturating_sub(13 + state));
        let line = format!(
            "{}  {}{fill}  {words}",
            screen.paint(TextStyle::Strong, &format!("{name:9}")),
            screen.paint(tone, &sanitize(word))
        );
        line.trim_end().to_owned() + "\n"
    };
    rows.map(line).concat()
}

fn state_style(state: &str) -> TextStyle {
    match state {
        "Ready" | "true" => TextStyle::Good,
        "Absent" | "Unknown" => TextStyle::Dim,
        "Invalid" | "false" => TextStyle::Bad,
        _ => TextStyle::Warning,
    }
}

fn format_pods(workload: &WorkloadOverview) -> String {
    if workload.ready.is_empty() { String::new() } else { format!("{} pods in {}", workload.ready, workload.namespace) }
}

/// Pipelines work without the trail webhook; the operator's own webhook is part of the operator.
fn format_webhook(webhook: &WorkloadOverview) -> String {
    match webhook.state.as_str() {
        "Absent" => "not installed (optional: stamps objects with trace context)".to_owned(),
        _ => format_pods(webhook),
    }
}

fn format_operator(operator: &WorkloadOverview) -> String {
    let leader = operator.leader.as_ref();
    match (operator.ready.is_empty(), leader) {
        (true, Some(leader)) => format!("outside of the cluster, as {leader}"),
        (_, Some(leader)) => format!("{}, led by {leader}", format_pods(operator)),
        (_, None) => format_pods(operator),
    }
}

fn format_viewer(viewer: &ViewerOverview) -> (&'static str, &'static str, TextStyle, String) {
    let Some(store) = &viewer.store else {
        return ("VIEWER", "Absent", TextStyle::Dim, format!("no viewer at {}", viewer.url));
    };
    let told = |traces: u64, what: &str| match traces {
        0 => String::new(),
        traces => format!(", {} {what}", format_count(traces, "trace")),
    };
    let lost = told(store.dropped.traces, "evicted") + &told(store.refused.traces, "too large");
    let held = format!(
        "{}: {} of {}, {} of {}{lost}",
        viewer.url,
        format_count(store.spans, "span"),
        format_count(store.traces, "trace"),
        format_bytes(store.bytes),
        format_bytes(store.limit)
    );
    ("VIEWER", "Ready", TextStyle::Good, held)
}

fn pipeline_table(pipelines: &[PipelineOverview]) -> TextTable {
    let mut table =
        TextTable::new(&["PIPELINE", "STATE", "READY", "REASON", "RECEIVED", "SENT", "DROPPED", "QUEUE", "BACKEND"]);
    for pipeline in pipelines {
        let dropped = TableCell::number(pipeline.dropped);
        let queue = match (pipeline.queued_bytes, pipeline.queue_capacity_bytes) {
            (Some(queued), Some(capacity)) if capacity > 0 => {
                format!("{:.0}%", queued as f64 * 100.0 / capacity as f64)
            }
            _ => String::new(),
        };
        table.row(vec![
            TableCell::new(&format!("{}/{}", pipeline.kind, pipeline.name)),
            TableCell::new(&pipeline.state).with_style(state_style(&pipeline.state)),
            TableCell::new(&pipeline.ready),
            TableCell::new(&pipeline.reason),
            TableCell::number(pipeline.received),
            TableCell::number(pipeline.sent),
            if pipeline.dropped.is_some_and(|lost| lost > 0) {
                dropped.with_style(TextStyle::Warning)
            } else {
                dropped
            },
            TableCell::new(&queue),
            TableCell::new(&pipeline.backend),
        ]);
    }
    table
}

fn collector_table(collectors: &[CollectorOverview]) -> TextTable {
    let mut table = TextTable::new(&["COLLECTOR", "TIER", "READY", "RESTARTS", "AGE", "VERSION", "STATUS"]);
    for collector in collectors {
        let ready = collector.ready.to_string();
        table.row(vec![
            TableCell::new(&collector.pod),
            TableCell::new(&collector.tier),
            TableCell::new(&ready).with_style(state_style(&ready)),
            TableCell::number(u64::try_from(collector.restarts).ok()),
            TableCell::new(&format_age(collector.age_seconds)),
            TableCell::new(&collector.version),
            TableCell::new(&collector.says),
        ]);
    }
    table
}

fn render_problems(problems: &[String], screen: &TerminalLayout) -> String {
    let heading = screen.paint(TextStyle::Strong, "PROBLEMS");
    let lines =
        problems.iter().map(|problem| format!("{} {}\n", screen.paint(TextStyle::Warning, "!"), sanitize(problem)));
    format!("{heading}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        inventory::viewer::{LostCounts, StoreInfo},
        status::model::{ClusterOverview, TelemetryOverview},
    };

    fn example() -> InstallOverview {
        let word = |word: &str| word.to_owned();
        InstallOverview {
            version: word("0.1.0"),
            cluster: ClusterOverview {
                reachable: true,
                server: word("https://127.0.0.1:6443"),
                source: word("context kubewake"),
                version: word("v1.35.0"),
            },
            operator: WorkloadOverview {
                state: word("Ready"),
                namespace: word("kubewake-system"),
                name: word("kubewake-operator"),
                ready: word("2/2"),
                problem: None,
                leader: Some(word("kubewake-operator-7")),
            },
            webhook: WorkloadOverview { state: word("Absent"), ..WorkloadOverview::default() },
            telemetry: TelemetryOverview {
                state: word("Ready"),
                endpoint: word("http://kubewake-otlp.kubewake-system:4317"),
            },
            pipelines: vec![
                PipelineOverview {
                    kind: word("tracepipeline"),
                    name: word("backend"),
                    state: word("Degraded"),
                    ready: word("2/2"),
                    reason: word("BackendRefuses"),
                    message: word("the backend refuses the credentials (grpc:16)"),
                    backend: word("https://backend.example.com:4317"),
                    received: Some(1200),
                    sent: Some(1100),
                    dropped: Some(0),
                    queued_bytes: Some(1 << 20),
                    queue_capacity_bytes: Some(64 << 20),
                },
                PipelineOverview {
                    kind: word("logpipeline"),
                    name: word("new"),
                    state: word("Pending"),
                    ..PipelineOverview::default()
                },
            ],
            collectors: vec![CollectorOverview {
                pod: word("kubewake-gateway-1"),
                tier: word("gateway"),
                phase: word("Running"),
                ready: true,
                restarts: 1,
                age_seconds: 3700,
                version: word("0.1.0"),
                says: word("ready"),
            }],
            viewer: ViewerOverview {
                url: word("http://127.0.0.1:16686"),
                reachable: true,
                store: Some(StoreInfo {
                    traces: 1,
                    spans: 30,
                    bytes: 20_000,
                    limit: 256 << 20,
                    dropped: LostCounts { traces: 2, spans: 9 },
                    refused: LostCounts { traces: 1, spans: 5 },
                }),
            },
            problems: vec![word("tracepipeline/backend is Degraded\u{1b}[2J")],
        }
    }

    #[test]
    fn everything_is_on_one_screen() {
        let expected = "\
CLUSTER    v1.35.0  https://127.0.0.1:6443 (context kubewake)
OPERATOR   Ready    2/2 pods in kubewake-system, led by kubewake-operator-7
WEBHOOK    Absent   not installed (optional: stamps objects with trace context)
TELEMETRY  Ready    send to http://kubewake-otlp.kubewake-system:4317
VIEWER     Ready    http://127.0.0.1:16686: 30 spans of 1 trace, 19.5 KiB of 256 MiB, 2 traces evicted, 1 trace too large

PIPELINE               STATE     READY  REASON          RECEIVED  SENT  DROPPED  QUEUE  BACKEND
tracepipeline/backend  Degraded  2/2    BackendRefuses      1200  1100        0  2%     https://backend.example.com:4317
logpipeline/new        Pending   -      -                      -     -        -  -      -

COLLECTOR           TIER     READY  RESTARTS  AGE  VERSION  STATUS
kubewake-gateway-1  gateway  true          1  61m  0.1.0    ready

PROBLEMS
! tracepipeline/backend is Degraded\\u{1b}[2J
";
        assert_eq!(render_status(&example(), &TerminalLayout::plain(140)), expected);
    }

    #[test]
    fn what_cannot_be_seen_is_said() {
        let status = InstallOverview { problems: vec!["there is no cluster".to_owned()], ..InstallOverview::default() };
        let drawn = render_status(&status, &TerminalLayout::plain(80));
        assert!(
            drawn.contains("CLUSTER    Unreachable  none\n") && drawn.ends_with("PROBLEMS\n! there is no cluster\n"),
            "{drawn}"
        );
    }

    #[test]
    fn names_are_kubectl_s() {
        let expected = "deployment.apps/kubewake-operator\ntelemetry.telemetry.kubewake.io/default\n\
                        tracepipeline.telemetry.kubewake.io/backend\nlogpipeline.telemetry.kubewake.io/new\npod/kubewake-gateway-1\n";
        assert_eq!(render_names(&example()), expected);
    }
}
