//! Gathers the status of an installation.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};
use kubewake_operator::names;
use kubewake_trail::error_chain;

use super::model;
use crate::{
    discovery::{ClusterArgs, ViewerArgs, ViewerLocation},
    http_client::JsonHttpClient,
    inventory::{
        self,
        collectors::{self, CollectorInstance, dropped_elsewhere, sum_totals},
        lease,
        pipelines::{self, InstalledPipeline},
        pods, viewer,
    },
    up::instance_record::InstanceRecord,
};

/// Name and namespace of the trail webhook.
const TRAIL_WEBHOOK_NAME: &str = "kubewake-webhook";
/// A viewer responds from memory.
const VIEWER_TIMEOUT: Duration = Duration::from_secs(3);
const STATE_ABSENT: &str = "Absent";
const STATE_UNKNOWN: &str = "Unknown";

/// Gathers everything. Whatever cannot be read is listed as a problem.
pub(super) async fn gather_status(
    cluster: &ClusterArgs,
    viewer: &ViewerArgs,
) -> anyhow::Result<model::InstallOverview> {
    let mut viewer = viewer.configured_viewer()?;
    let (mut status, client) = gather_cluster(cluster).await;
    if let Some(client) = client {
        viewer = viewer.or_discover(&client).await;
    }
    match gather_viewer(&viewer).await {
        Ok(seen) => status.viewer = seen,
        Err(why) => {
            status.viewer.url = viewer.url.clone();
            // A missing viewer is a problem only if an argument names it.
            if viewer.is_named {
                status.problems.push(format!("failed to read the status of the viewer at {}: {why}", viewer.url));
            }
        }
    }
    Ok(status)
}

async fn gather_viewer(viewer: &ViewerLocation) -> Result<model::ViewerOverview, String> {
    let info =
        viewer::fetch_info(&JsonHttpClient::new(VIEWER_TIMEOUT), viewer).await.map_err(|error| error.to_string())?;
    Ok(model::ViewerOverview { url: viewer.url.clone(), reachable: true, store: Some(info.store) })
}

/// Returns a client if the cluster responds.
async fn gather_cluster(args: &ClusterArgs) -> (model::InstallOverview, Option<Client>) {
    let mut status =
        model::InstallOverview { version: env!("CARGO_PKG_VERSION").to_owned(), ..model::InstallOverview::default() };
    let cluster = match args.resolve_cluster().await {
        Ok(cluster) => cluster,
        Err(error) => {
            status.problems.push(error_chain(error.as_ref()));
            return (mark_unknown(status), None);
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
            let elsewhere =
                InstanceRecord::find_newest().filter(|_| args.kubeconfig_args.kubeconfig.is_none()).map(|up| {
                    format!("; a `kubewake up` is running on this machine: --kubeconfig {}", up.kubeconfig.display())
                });
            let elsewhere = elsewhere.unwrap_or_default();
            status.problems.push(format!(
                "failed to connect to the API server at {}: {}{elsewhere}",
                cluster.server,
                error_chain(&error)
            ));
            return (mark_unknown(status), None);
        }
    }
    (gather_installation(&cluster.client, &args.namespace, status).await, Some(cluster.client))
}

/// Marks everything in the cluster as unknown.
fn mark_unknown(mut status: model::InstallOverview) -> model::InstallOverview {
    for part in [&mut status.operator, &mut status.webhook] {
        STATE_UNKNOWN.clone_into(&mut part.state);
    }
    STATE_UNKNOWN.clone_into(&mut status.telemetry.state);
    status
}

async fn gather_installation(
    client: &Client,
    namespace: &str,
    mut status: model::InstallOverview,
) -> model::InstallOverview {
    let (operator, leader, webhook, telemetry, (pipelines, errors), collectors) = tokio::join!(
        deployment_overview(client, namespace, names::FIELD_MANAGER),
        lease::fetch_leader(client, namespace),
        deployment_overview(client, TRAIL_WEBHOOK_NAME, TRAIL_WEBHOOK_NAME),
        pipelines::fetch_telemetry(client),
        pipelines::list_pipelines(client),
        collectors::list_collectors(client, namespace),
    );
    let problems = &mut status.problems;
    let leader = ok_or_note_problem(problems, "failed to get the Lease of the operator", leader)
        .flatten()
        .filter(|leader| !leader.is_vacant);
    status.operator = ok_or_note_problem(problems, "failed to get the Deployment of the operator", operator)
        .unwrap_or_else(|| unknown_workload(namespace, names::FIELD_MANAGER));
    status.operator.leader = leader.map(|leader| leader.holder);
    assess_operator(&mut status.operator, problems);
    status.webhook = ok_or_note_problem(problems, "failed to get the Deployment of the trail webhook", webhook)
        .unwrap_or_else(|| unknown_workload(TRAIL_WEBHOOK_NAME, TRAIL_WEBHOOK_NAME));
    if status.webhook.state == "Degraded" {
        problems.push(describe_unready_pods("trail webhook", &status.webhook));
    }
    // Without the CRDs all lists fail for the same reason.
    match ok_or_note_problem(problems, "failed to get the Telemetry", telemetry.map_err(explain_missing_kind)) {
        Some(telemetry) => status.telemetry = self::telemetry_overview(telemetry),
        None => STATE_UNKNOWN.clone_into(&mut status.telemetry.state),
    }
    if status.telemetry.state != STATE_UNKNOWN {
        problems.extend(errors.iter().map(|error| format!("failed to list pipelines: {}", error_chain(error))));
    }
    let collectors =
        ok_or_note_problem(problems, "failed to list the pods of the collectors", collectors).unwrap_or_default();
    status.pipelines = pipelines.iter().map(|it| pipeline_overview(it, &collectors, problems)).collect();
    status.collectors = collectors.iter().map(|it| collector_overview(it, problems)).collect();
    status
}

/// The value, or none with a problem for the error.
fn ok_or_note_problem<T>(problems: &mut Vec<String>, what: &str, read: Result<T, kube::Error>) -> Option<T> {
    read.map_err(|error| problems.push(format!("{what}: {}", error_chain(&error)))).ok()
}

/// The API server's error is only "not found".
fn explain_missing_kind(error: kube::Error) -> kube::Error {
    match error {
        kube::Error::Api(mut status) if status.code == 404 => {
            status.reason = "NotFound".to_owned();
            status.message = "the CRDs are not installed (kubewake operator manifests | kubectl apply -f -)".to_owned();
            kube::Error::Api(status)
        }
        other => other,
    }
}

fn unknown_workload(namespace: &str, name: &str) -> model::WorkloadOverview {
    let namespace = namespace.to_owned();
    let name = name.to_owned();
    model::WorkloadOverview { state: STATE_UNKNOWN.to_owned(), namespace, name, ..model::WorkloadOverview::default() }
}

async fn deployment_overview(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<model::WorkloadOverview, kube::Error> {
    let found = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(name).await?;
    let mut workload = unknown_workload(namespace, name);
    let Some(found) = found else {
        STATE_ABSENT.clone_into(&mut workload.state);
        return Ok(workload);
    };
    let wanted = found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = found.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    workload.ready = format!("{ready}/{wanted}");
    // With zero replicas it was scaled down, and does not work.
    workload.state = if ready > 0 && ready >= wanted { "Ready" } else { "Degraded" }.to_owned();
    if workload.state != "Ready" {
        workload.problem = pods::find_deployment_problem(client, &found).await;
    }
    Ok(workload)
}

fn describe_unready_pods(what: &str, workload: &model::WorkloadOverview) -> String {
    let why = workload.problem.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("the {what} has {} ready pods{why}", workload.ready)
}

/// The operator may run outside of the cluster, where only the Lease shows it.
fn assess_operator(operator: &mut model::WorkloadOverview, problems: &mut Vec<String>) {
    match (operator.state.as_str(), &operator.leader) {
        ("Absent", Some(_)) => "Ready".clone_into(&mut operator.state),
        ("Absent", None) => {
            problems.push("the operator is not installed: kubewake operator manifests | kubectl apply -f -".to_owned())
        }
        ("Degraded", _) => problems.push(describe_unready_pods("operator", operator)),
        ("Ready", None) => {
            "Degraded".clone_into(&mut operator.state);
            problems.push("no operator holds the Lease, so changes of pipelines have no effect".to_owned());
        }
        _ => {}
    }
}

fn telemetry_overview(object: Option<serde_json::Value>) -> model::TelemetryOverview {
    let Some(object) = object else {
        return model::TelemetryOverview { state: STATE_ABSENT.to_owned(), ..model::TelemetryOverview::default() };
    };
    let state = inventory::text_at_pointer(&object, "/status/state");
    let endpoint = inventory::text_at_pointer(&object, "/status/endpoints/otlp/grpc");
    model::TelemetryOverview { state: if state.is_empty() { STATE_UNKNOWN.to_owned() } else { state }, endpoint }
}

fn pipeline_overview(
    of: &InstalledPipeline,
    collectors: &[CollectorInstance],
    problems: &mut Vec<String>,
) -> model::PipelineOverview {
    let state = of.status("state");
    let state = if state.is_empty() { STATE_UNKNOWN.to_owned() } else { state };
    let reason = of.status("reason");
    let message = of.message();
    if state != "Ready" {
        let why = if message.is_empty() { "the status has no message".to_owned() } else { message.clone() };
        problems.push(format!("{} is {state} ({reason}): {why}", of.display_name()));
    }
    let totals = sum_totals(collectors, &of.id(), &of.uid());
    let figure = |of: fn(&collectors::PipelineTotals) -> u64| totals.as_ref().map(of);
    model::PipelineOverview {
        kind: of.kind.name().to_owned(),
        name: of.name.clone(),
        state,
        ready: of.status("ready"),
        reason,
        message,
        backend: of.status("backend"),
        received: figure(|totals| totals.received),
        sent: figure(|totals| totals.sent),
        dropped: total_dropped(of, collectors, totals.as_ref()),
        queued_bytes: figure(|totals| totals.queued),
        queue_capacity_bytes: figure(|totals| totals.queue_capacity),
    }
}

/// Data of a pipeline that was lost, as far as it is known. Collectors that have ended cannot be queried: the
/// operator records their last counters.
fn total_dropped(
    of: &InstalledPipeline,
    collectors: &[CollectorInstance],
    totals: Option<&collectors::PipelineTotals>,
) -> Option<u64> {
    let running = totals.map_or_else(|| dropped_elsewhere(collectors, &of.uid()), |totals| totals.dropped);
    let all = running.saturating_add(of.dropped_at_shutdown());
    (totals.is_some() || all > 0).then_some(all)
}

fn collector_overview(of: &CollectorInstance, problems: &mut Vec<String>) -> model::CollectorOverview {
    if !of.is_ready && of.phase != "Terminating" {
        let why = of.trouble.as_deref().unwrap_or(&of.phase);
        problems.push(format!("collector pod {} is not ready: {why}", of.pod));
    }
    let (version, says) = match &of.report {
        Ok(report) => (report.version.clone(), report.phase.as_str().to_owned()),
        Err(why) => (String::new(), of.trouble.clone().unwrap_or_else(|| why.clone())),
    };
    model::CollectorOverview {
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
    use crate::inventory::{
        collectors::tests::{collector, report},
        pipelines::InstalledPipelineKind,
    };

    #[test]
    fn operator_without_ready_pods_is_told_with_reason() {
        let why = "pod kubewake-operator-0: ErrImagePull: image example.com/operator:2: not found";
        let problems = |problem: Option<&str>| {
            let mut operator = unknown_workload("kubewake-system", "kubewake-operator");
            operator.state = "Degraded".to_owned();
            operator.ready = "0/2".to_owned();
            operator.problem = problem.map(str::to_owned);
            let mut problems = Vec::new();
            assess_operator(&mut operator, &mut problems);
            problems
        };
        assert_eq!(problems(Some(why)), [format!("the operator has 0/2 ready pods: {why}")]);
        assert_eq!(problems(None), ["the operator has 0/2 ready pods"]);
    }

    #[test]
    fn losses_count_also_where_no_collector_knows_the_pipeline_any_more() {
        let object = json!({
            "metadata": {"name": "a", "uid": "one", "generation": 1},
            "status": {"state": "Ready", "droppedAtShutdown": {"items": 200, "lastTime": "2026-01-01T00:00:00Z"}},
        });
        let pipeline = InstalledPipeline::example(InstalledPipelineKind::Traces, object);
        let shown = |collectors: &[CollectorInstance]| {
            let shown = super::pipeline_overview(&pipeline, collectors, &mut Vec::new());
            (shown.received, shown.sent, shown.dropped)
        };
        assert_eq!(shown(&[]), (None, None, Some(200)), "what nobody said is not zero");
        let mut between = report("traces/_sticky", 9, 7, 2);
        between.pipelines.get_mut("traces/_sticky").unwrap().carries = vec!["one".to_owned()];
        let gateway = collector("gateway", Ok(between));
        assert_eq!(shown(std::slice::from_ref(&gateway)), (None, None, Some(202)));
        let sticky = collector("sticky", Ok(report("traces/a", 7, 6, 1)));
        assert_eq!(shown(&[gateway, sticky]), (Some(7), Some(6), Some(203)));
        let healthy = InstalledPipeline::example(
            InstalledPipelineKind::Traces,
            json!({"metadata": {"name": "a", "uid": "one", "generation": 1}}),
        );
        assert_eq!(super::pipeline_overview(&healthy, &[], &mut Vec::new()).dropped, None);
    }
}
