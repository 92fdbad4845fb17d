//! Everything that there is to say.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};
use kubewake_operator::names;
use kubewake_trail::in_words;

use super::model;
use crate::{
    place::{ClusterArgs, Viewer, ViewerArgs},
    survey::{
        self,
        collectors::{self, Collector, lost_elsewhere, totals},
        lease,
        pipelines::{self, Pipeline},
        viewer,
    },
    up::notice::Notice,
    web::Web,
};

/// Where the trail webhook is installed, and its name.
const WEBHOOK: &str = "kubewake-webhook";
/// A viewer answers from memory.
const PATIENCE: Duration = Duration::from_secs(3);
const ABSENT: &str = "Absent";
const UNKNOWN: &str = "Unknown";

/// All of it. What cannot be seen is among the problems.
pub(super) async fn gather(cluster: &ClusterArgs, viewer: &ViewerArgs) -> anyhow::Result<model::Status> {
    let mut viewer = viewer.viewer()?;
    let (mut status, client) = of_cluster(cluster).await;
    if let Some(client) = client {
        viewer = viewer.or_of(&client).await;
    }
    match of_viewer(&viewer).await {
        Ok(seen) => status.viewer = seen,
        Err(why) => {
            status.viewer.url = viewer.url.clone();
            // Who has none has not said so.
            if viewer.is_named {
                status.problems.push(format!("the viewer at {} does not answer: {why}", viewer.url));
            }
        }
    }
    Ok(status)
}

async fn of_viewer(viewer: &Viewer) -> Result<model::Viewer, String> {
    let info = viewer::info(&Web::new(PATIENCE), viewer).await.map_err(|error| error.to_string())?;
    Ok(model::Viewer { url: viewer.url.clone(), reachable: true, store: Some(info.store) })
}

/// With a client, if the cluster answers.
async fn of_cluster(args: &ClusterArgs) -> (model::Status, Option<Client>) {
    let mut status = model::Status { version: env!("CARGO_PKG_VERSION").to_owned(), ..model::Status::default() };
    let cluster = match args.cluster().await {
        Ok(cluster) => cluster,
        Err(error) => {
            status.problems.push(in_words(error.as_ref()));
            return (unseen(status), None);
        }
    };
    status.cluster.server = cluster.server.clone();
    status.cluster.source = cluster.source.clone();
    match cluster.client.apiserver_version().await {
        Ok(version) => {
            status.cluster.reachable = true;
            status.cluster.version = version.git_version;
        }
        Err(error) => {
            let elsewhere = Notice::find().filter(|_| args.reach.kubeconfig.is_none()).map(|up| {
                format!("; `kubewake up` was started on this machine: --kubeconfig {}", up.kubeconfig.display())
            });
            let elsewhere = elsewhere.unwrap_or_default();
            status.problems.push(format!(
                "the API server at {} does not answer: {}{elsewhere}",
                cluster.server,
                in_words(&error)
            ));
            return (unseen(status), None);
        }
    }
    (installed(&cluster.client, &args.namespace, status).await, Some(cluster.client))
}

/// Nothing is known of what is in the cluster.
fn unseen(mut status: model::Status) -> model::Status {
    for part in [&mut status.operator, &mut status.webhook] {
        UNKNOWN.clone_into(&mut part.state);
    }
    UNKNOWN.clone_into(&mut status.telemetry.state);
    status
}

async fn installed(client: &Client, namespace: &str, mut status: model::Status) -> model::Status {
    let (operator, leader, webhook, telemetry, (pipelines, errors), collectors) = tokio::join!(
        deployment(client, namespace, names::MANAGER),
        lease::leader(client, namespace),
        deployment(client, WEBHOOK, WEBHOOK),
        pipelines::telemetry(client),
        pipelines::all(client),
        collectors::all(client, namespace),
    );
    let problems = &mut status.problems;
    let leader =
        said(problems, "the operator's Lease cannot be read", leader).flatten().filter(|leader| !leader.is_gone);
    status.operator =
        said(problems, "the operator cannot be seen", operator).unwrap_or_else(|| unknown(namespace, names::MANAGER));
    status.operator.leader = leader.map(|leader| leader.holder);
    judge_operator(&mut status.operator, problems);
    status.webhook = said(problems, "the webhook cannot be seen", webhook).unwrap_or_else(|| unknown(WEBHOOK, WEBHOOK));
    if status.webhook.state == "Degraded" {
        problems.push(format!("the webhook has {} pods that are ready", status.webhook.ready));
    }
    // Without the kinds all lists fail in the same way.
    match said(problems, "the kinds of pipelines cannot be read", telemetry.map_err(kind_missing)) {
        Some(telemetry) => status.telemetry = self::telemetry(telemetry),
        None => UNKNOWN.clone_into(&mut status.telemetry.state),
    }
    if status.telemetry.state != UNKNOWN {
        problems.extend(errors.iter().map(|error| format!("pipelines cannot be listed: {}", in_words(error))));
    }
    let collectors = said(problems, "the collectors cannot be seen", collectors).unwrap_or_default();
    status.pipelines = pipelines.iter().map(|it| pipeline(it, &collectors, problems)).collect();
    status.collectors = collectors.iter().map(|it| collector(it, problems)).collect();
    status
}

/// What was read, or a problem.
fn said<T>(problems: &mut Vec<String>, what: &str, read: Result<T, kube::Error>) -> Option<T> {
    read.map_err(|error| problems.push(format!("{what}: {}", in_words(&error)))).ok()
}

/// In the API server's words it is only "not found".
fn kind_missing(error: kube::Error) -> kube::Error {
    match error {
        kube::Error::Api(mut status) if status.code == 404 => {
            status.reason = "NotFound".to_owned();
            status.message = "they are not installed (kubewake operator manifests | kubectl apply -f -)".to_owned();
            kube::Error::Api(status)
        }
        other => other,
    }
}

fn unknown(namespace: &str, name: &str) -> model::Workload {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    model::Workload { state: UNKNOWN.to_owned(), namespace, name, ..model::Workload::default() }
}

async fn deployment(client: &Client, namespace: &str, name: &str) -> Result<model::Workload, kube::Error> {
    let found = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(name).await?;
    let mut workload = unknown(namespace, name);
    let Some(found) = found else {
        ABSENT.clone_into(&mut workload.state);
        return Ok(workload);
    };
    let wanted = found.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = found.status.and_then(|status| status.ready_replicas).unwrap_or(0);
    workload.ready = format!("{ready}/{wanted}");
    // None of none is not enough: somebody scaled it down, and nothing of it works.
    workload.state = if ready > 0 && ready >= wanted { "Ready" } else { "Degraded" }.to_owned();
    Ok(workload)
}

/// It may also run outside of the cluster, where only the Lease tells of it.
fn judge_operator(operator: &mut model::Workload, problems: &mut Vec<String>) {
    match (operator.state.as_str(), &operator.leader) {
        ("Absent", Some(_)) => "Ready".clone_into(&mut operator.state),
        ("Absent", None) => {
            problems.push("there is no operator: kubewake operator manifests | kubectl apply -f -".to_owned())
        }
        ("Degraded", _) => problems.push(format!("the operator has {} pods that are ready", operator.ready)),
        ("Ready", None) => {
            "Degraded".clone_into(&mut operator.state);
            problems.push("no operator leads, so that nothing happens when a pipeline changes".to_owned());
        }
        _ => {}
    }
}

fn telemetry(object: Option<serde_json::Value>) -> model::Telemetry {
    let Some(object) = object else {
        return model::Telemetry { state: ABSENT.to_owned(), ..model::Telemetry::default() };
    };
    let state = survey::text(&object, "/status/state");
    let endpoint = survey::text(&object, "/status/endpoints/otlp/grpc");
    model::Telemetry { state: if state.is_empty() { UNKNOWN.to_owned() } else { state }, endpoint }
}

fn pipeline(of: &Pipeline, collectors: &[Collector], problems: &mut Vec<String>) -> model::Pipeline {
    let state = of.status("state");
    let state = if state.is_empty() { UNKNOWN.to_owned() } else { state };
    let (reason, message) = (of.status("reason"), of.message());
    if state != "Ready" {
        let why = if message.is_empty() { "nobody says why".to_owned() } else { message.clone() };
        problems.push(format!("{} is {state} ({reason}): {why}", of.title()));
    }
    let totals = totals(collectors, &of.id(), &of.uid());
    let figure = |of: fn(&collectors::Totals) -> u64| totals.as_ref().map(of);
    model::Pipeline {
        kind: of.kind.name().to_owned(),
        name: of.name.clone(),
        state,
        ready: of.status("ready"),
        reason,
        message,
        backend: of.status("backend"),
        received: figure(|totals| totals.received),
        sent: figure(|totals| totals.sent),
        dropped: dropped(of, collectors, totals.as_ref()),
        queued_bytes: figure(|totals| totals.queued),
        queue_capacity_bytes: figure(|totals| totals.queue_capacity),
    }
}

/// What was lost of a pipeline, as far as anybody says. Collectors that have ended cannot be asked: the operator has noted what they said at last.
fn dropped(of: &Pipeline, collectors: &[Collector], totals: Option<&collectors::Totals>) -> Option<u64> {
    let running = totals.map_or_else(|| lost_elsewhere(collectors, &of.uid()), |totals| totals.dropped);
    let all = running.saturating_add(of.dropped_at_shutdown());
    (totals.is_some() || all > 0).then_some(all)
}

fn collector(of: &Collector, problems: &mut Vec<String>) -> model::Collector {
    if !of.is_ready && of.phase != "Terminating" {
        let why = of.trouble.as_deref().unwrap_or(&of.phase);
        problems.push(format!("the collector {} is not ready: {why}", of.pod));
    }
    let (version, says) = match &of.report {
        Ok(report) => (report.version.clone(), report.phase.clone()),
        Err(why) => (String::new(), of.trouble.clone().unwrap_or_else(|| why.clone())),
    };
    model::Collector {
        pod: of.pod.clone(),
        tier: of.tier.to_owned(),
        phase: of.phase.clone(),
        ready: of.is_ready,
        restarts: of.restarts,
        age_seconds: of.age_seconds,
        version,
        says,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::survey::{
        collectors::tests::{collector, report},
        pipelines::Kind,
    };

    #[test]
    fn losses_count_also_where_no_collector_knows_the_pipeline_any_more() {
        let object = json!({
            "metadata": {"name": "a", "uid": "one", "generation": 1},
            "status": {"state": "Ready", "droppedAtShutdown": {"items": 200, "lastTime": "2026-01-01T00:00:00Z"}},
        });
        let pipeline = Pipeline::example(Kind::Traces, object);
        let shown = |collectors: &[Collector]| {
            let shown = super::pipeline(&pipeline, collectors, &mut Vec::new());
            (shown.received, shown.sent, shown.dropped)
        };
        assert_eq!(shown(&[]), (None, None, Some(200)), "what nobody said is not zero");
        let mut between = report("traces/_sticky", 9, 7, 2);
        between.pipelines.get_mut("traces/_sticky").unwrap().carries = vec!["one".to_owned()];
        let gateway = collector("gateway", Ok(between));
        assert_eq!(shown(std::slice::from_ref(&gateway)), (None, None, Some(202)));
        let sticky = collector("sticky", Ok(report("traces/a", 7, 6, 1)));
        assert_eq!(shown(&[gateway, sticky]), (Some(7), Some(6), Some(203)));
        let healthy =
            Pipeline::example(Kind::Traces, json!({"metadata": {"name": "a", "uid": "one", "generation": 1}}));
        assert_eq!(super::pipeline(&healthy, &[], &mut Vec::new()).dropped, None);
    }
}
