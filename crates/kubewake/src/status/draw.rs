//! The status on one screen.

use super::model::{Collector, Pipeline, Status, Viewer, Workload};
use crate::output::{
    Screen, Tone,
    number::{age, bytes, count},
    table::{Cell, Table},
    text::{cut, safe},
};

/// For people.
pub(super) fn table(status: &Status, screen: &Screen) -> String {
    let mut parts = vec![head(status, screen)];
    if !status.pipelines.is_empty() {
        parts.push(pipelines(&status.pipelines).draw(screen));
    }
    if !status.collectors.is_empty() {
        parts.push(collectors(&status.collectors).draw(screen));
    }
    if !status.problems.is_empty() {
        parts.push(problems(&status.problems, screen));
    }
    parts.join("\n")
}

/// One name in a line, as kubectl writes them.
pub(super) fn names(status: &Status) -> String {
    let workloads = [&status.operator, &status.webhook].into_iter().filter(|workload| !workload.ready.is_empty());
    let workloads = workloads.map(|workload| format!("deployment.apps/{}\n", safe(&workload.name)));
    let telemetry = (!["Absent", "Unknown"].contains(&status.telemetry.state.as_str()))
        .then(|| "telemetry.telemetry.kubewake.io/default\n".to_owned());
    let pipelines = status.pipelines.iter().map(|it| format!("{}.telemetry.kubewake.io/{}\n", it.kind, safe(&it.name)));
    let pods = status.collectors.iter().map(|it| format!("pod/{}\n", safe(&it.pod)));
    workloads.chain(telemetry).chain(pipelines).chain(pods).collect()
}

fn head(status: &Status, screen: &Screen) -> String {
    let cluster = &status.cluster;
    let at = match (cluster.server.is_empty(), cluster.source.is_empty()) {
        (true, _) => "none".to_owned(),
        (false, true) => cluster.server.clone(),
        (false, false) => format!("{} ({})", cluster.server, cluster.source),
    };
    let cluster = match cluster.reachable {
        true => (cluster.version.as_str(), Tone::Good, at),
        false => ("Unreachable", Tone::Bad, at),
    };
    let telemetry = match status.telemetry.state.as_str() {
        "Absent" => "all defaults hold".to_owned(),
        _ if status.telemetry.endpoint.is_empty() => String::new(),
        _ => format!("send to {}", status.telemetry.endpoint),
    };
    let rows = [
        ("CLUSTER", cluster.0, cluster.1, cluster.2),
        ("OPERATOR", &*status.operator.state, tone(&status.operator.state), operator(&status.operator)),
        ("WEBHOOK", &*status.webhook.state, tone(&status.webhook.state), webhook(&status.webhook)),
        ("TELEMETRY", &*status.telemetry.state, tone(&status.telemetry.state), telemetry),
        viewer(&status.viewer),
    ];
    let state = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    let line = |(name, word, tone, words): (&str, &str, Tone, String)| {
        let fill = " ".repeat(state.saturating_sub(word.len()));
        let words = cut(&safe(&words), screen.width.saturating_sub(13 + state));
        let line = format!(
            "{}  {}{fill}  {words}",
            screen.paint(Tone::Strong, &format!("{name:9}")),
            screen.paint(tone, &safe(word))
        );
        line.trim_end().to_owned() + "\n"
    };
    rows.map(line).concat()
}

fn tone(state: &str) -> Tone {
    match state {
        "Ready" | "true" => Tone::Good,
        "Absent" | "Unknown" => Tone::Dim,
        "Invalid" | "false" => Tone::Bad,
        _ => Tone::Warning,
    }
}

fn pods(workload: &Workload) -> String {
    match workload.ready.is_empty() {
        true => String::new(),
        false => format!("{} pods in {}", workload.ready, workload.namespace),
    }
}

/// Pipelines work without it, and the operator's own webhook is part of the operator.
fn webhook(webhook: &Workload) -> String {
    match webhook.state.as_str() {
        "Absent" => "not installed (optional: it puts trace context on objects)".to_owned(),
        _ => pods(webhook),
    }
}

fn operator(operator: &Workload) -> String {
    let leader = operator.leader.as_ref();
    match (operator.ready.is_empty(), leader) {
        (true, Some(leader)) => format!("outside of the cluster, as {leader}"),
        (_, Some(leader)) => format!("{}, led by {leader}", pods(operator)),
        (_, None) => pods(operator),
    }
}

fn viewer(viewer: &Viewer) -> (&'static str, &'static str, Tone, String) {
    let Some(store) = &viewer.store else { return ("VIEWER", "Absent", Tone::Dim, format!("not at {}", viewer.url)) };
    let told = |traces: u64, what: &str| match traces {
        0 => String::new(),
        traces => format!(", {} {what}", count(traces, "trace")),
    };
    let lost = told(store.dropped.traces, "made room") + &told(store.refused.traces, "too large");
    let held = format!(
        "{}: {} of {}, {} of {}{lost}",
        viewer.url,
        count(store.spans, "span"),
        count(store.traces, "trace"),
        bytes(store.bytes),
        bytes(store.limit)
    );
    ("VIEWER", "Ready", Tone::Good, held)
}

fn pipelines(pipelines: &[Pipeline]) -> Table {
    let mut table =
        Table::new(&["PIPELINE", "STATE", "READY", "REASON", "RECEIVED", "SENT", "DROPPED", "QUEUE", "BACKEND"]);
    for pipeline in pipelines {
        let dropped = Cell::number(pipeline.dropped);
        let queue = match (pipeline.queued_bytes, pipeline.queue_capacity_bytes) {
            (Some(queued), Some(capacity)) if capacity > 0 => {
                format!("{:.0}%", queued as f64 * 100.0 / capacity as f64)
            }
            _ => String::new(),
        };
        table.row(vec![
            Cell::new(&format!("{}/{}", pipeline.kind, pipeline.name)),
            Cell::new(&pipeline.state).toned(tone(&pipeline.state)),
            Cell::new(&pipeline.ready),
            Cell::new(&pipeline.reason),
            Cell::number(pipeline.received),
            Cell::number(pipeline.sent),
            if pipeline.dropped.is_some_and(|lost| lost > 0) { dropped.toned(Tone::Warning) } else { dropped },
            Cell::new(&queue),
            Cell::new(&pipeline.backend),
        ]);
    }
    table
}

fn collectors(collectors: &[Collector]) -> Table {
    let mut table = Table::new(&["COLLECTOR", "TIER", "READY", "RESTARTS", "AGE", "VERSION", "SAYS"]);
    for collector in collectors {
        let ready = collector.ready.to_string();
        table.row(vec![
            Cell::new(&collector.pod),
            Cell::new(&collector.tier),
            Cell::new(&ready).toned(tone(&ready)),
            Cell::number(u64::try_from(collector.restarts).ok()),
            Cell::new(&age(collector.age_seconds)),
            Cell::new(&collector.version),
            Cell::new(&collector.says),
        ]);
    }
    table
}

fn problems(problems: &[String], screen: &Screen) -> String {
    let heading = screen.paint(Tone::Strong, "PROBLEMS");
    let lines = problems.iter().map(|problem| format!("{} {}\n", screen.paint(Tone::Warning, "!"), safe(problem)));
    format!("{heading}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        status::model::{Cluster, Telemetry},
        survey::viewer::{Lost, Store},
    };

    fn example() -> Status {
        let word = |word: &str| word.to_owned();
        Status {
            version: word("0.1.0"),
            cluster: Cluster {
                reachable: true,
                server: word("https://127.0.0.1:6443"),
                source: word("context kubewake"),
                version: word("v1.35.0"),
            },
            operator: Workload {
                state: word("Ready"),
                namespace: word("kubewake-system"),
                name: word("kubewake-operator"),
                ready: word("2/2"),
                leader: Some(word("kubewake-operator-7")),
            },
            webhook: Workload { state: word("Absent"), ..Workload::default() },
            telemetry: Telemetry { state: word("Ready"), endpoint: word("http://kubewake-otlp.kubewake-system:4317") },
            pipelines: vec![
                Pipeline {
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
                Pipeline {
                    kind: word("logpipeline"),
                    name: word("new"),
                    state: word("Pending"),
                    ..Pipeline::default()
                },
            ],
            collectors: vec![Collector {
                pod: word("kubewake-gateway-1"),
                tier: word("gateway"),
                phase: word("Running"),
                ready: true,
                restarts: 1,
                age_seconds: 3700,
                version: word("0.1.0"),
                says: word("ready"),
            }],
            viewer: Viewer {
                url: word("http://127.0.0.1:16686"),
                reachable: true,
                store: Some(Store {
                    traces: 1,
                    spans: 30,
                    bytes: 20_000,
                    limit: 256 << 20,
                    dropped: Lost { traces: 2, spans: 9 },
                    refused: Lost { traces: 1, spans: 5 },
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
WEBHOOK    Absent   not installed (optional: it puts trace context on objects)
TELEMETRY  Ready    send to http://kubewake-otlp.kubewake-system:4317
VIEWER     Ready    http://127.0.0.1:16686: 30 spans of 1 trace, 19.5 KiB of 256 MiB, 2 traces made room, 1 trace too large

PIPELINE               STATE     READY  REASON          RECEIVED  SENT  DROPPED  QUEUE  BACKEND
tracepipeline/backend  Degraded  2/2    BackendRefuses      1200  1100        0  2%     https://backend.example.com:4317
logpipeline/new        Pending   -      -                      -     -        -  -      -

COLLECTOR           TIER     READY  RESTARTS  AGE  VERSION  SAYS
kubewake-gateway-1  gateway  true          1  61m  0.1.0    ready

PROBLEMS
! tracepipeline/backend is Degraded\\u{1b}[2J
";
        assert_eq!(table(&example(), &Screen::plain(140)), expected);
    }

    #[test]
    fn what_cannot_be_seen_is_said() {
        let status = Status { problems: vec!["there is no cluster".to_owned()], ..Status::default() };
        let drawn = table(&status, &Screen::plain(80));
        assert!(
            drawn.contains("CLUSTER    Unreachable  none\n") && drawn.ends_with("PROBLEMS\n! there is no cluster\n"),
            "{drawn}"
        );
    }

    #[test]
    fn names_are_kubectl_s() {
        let expected = "deployment.apps/kubewake-operator\ntelemetry.telemetry.kubewake.io/default\n\
                        tracepipeline.telemetry.kubewake.io/backend\nlogpipeline.telemetry.kubewake.io/new\npod/kubewake-gateway-1\n";
        assert_eq!(names(&example()), expected);
    }
}
