//! Collector pods, and the status that each of them reports.

use std::net::{IpAddr, SocketAddr};

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use kubewake_operator::{CollectorTier, names};
use kubewake_status::{CollectorStatus, PipelineReport, STATUS_PORT};
use kubewake_status_client::CollectorPod;

use super::pods;

const MAX_CONCURRENT_REQUESTS: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct CollectorInstance {
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) tier: &'static str,
    pub(crate) phase: String,
    /// Address of its status.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) is_ready: bool,
    pub(crate) restarts: i32,
    pub(crate) age_seconds: i64,
    /// Why the pod does not start or has ended, according to the scheduler or the kubelet:
    /// `ImagePullBackOff: image …`.
    pub(crate) trouble: Option<String>,
    /// Its status, or why that could not be read.
    pub(crate) report: Result<CollectorStatus, String>,
}

/// The counters of a pipeline, summed over all collectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipelineTotals {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) dropped: u64,
    pub(crate) queued: u64,
    pub(crate) queue_capacity: u64,
}

pub(crate) async fn list_collectors(client: &Client, namespace: &str) -> Result<Vec<CollectorInstance>, kube::Error> {
    let mut pods = list_collector_pods(client, namespace).await?;
    match list_collector_pods(client, names::AGENT_NAMESPACE).await {
        Ok(agents) => pods.extend(agents),
        // Who may only read the operator's namespace sees the collectors there.
        Err(kube::Error::Api(status)) if status.code == 403 => {}
        Err(error) => return Err(error),
    }
    let asked = pods.into_iter().filter_map(|pod| {
        let tier = CollectorTier::from_name(pod.labels().get(names::NAME_LABEL)?)?;
        Some(inspect_pod(client, tier, pod))
    });
    // Collected first: a stream over a lazy map would borrow for too short a time.
    let asked: Vec<_> = asked.collect();
    let mut all: Vec<CollectorInstance> = stream::iter(asked).buffer_unordered(MAX_CONCURRENT_REQUESTS).collect().await;
    all.sort_by(|a, b| a.pod.cmp(&b.pod));
    Ok(all)
}

/// The pods of a namespace that have the label of collectors.
async fn list_collector_pods(client: &Client, namespace: &str) -> Result<Vec<Pod>, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    Ok(pods.list(&ListParams::default().labels(&names::collector_selector())).await?.items)
}

async fn inspect_pod(client: &Client, tier: CollectorTier, pod: Pod) -> CollectorInstance {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ends = pod.metadata.deletion_timestamp.is_some();
    let address: Option<IpAddr> = status.pod_ip.as_deref().and_then(|address| address.parse().ok());
    let report = if status.phase.as_deref() == Some("Running") && !ends {
        let namespace = pod.namespace().unwrap_or_default();
        let asked = CollectorPod { namespace: &namespace, name: &pod.name_any(), address };
        kubewake_status_client::fetch_status_of(client, asked).await.map_err(|error| error.to_string())
    } else {
        Err("the pod is not running".to_owned())
    };
    let born = pod.metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
    CollectorInstance {
        namespace: pod.namespace().unwrap_or_default(),
        pod: pod.name_any(),
        tier: match tier {
            CollectorTier::Gateway => "gateway",
            CollectorTier::Sticky => "sticky",
            CollectorTier::Agent => "agent",
        },
        phase: if ends { "Terminating".to_owned() } else { status.phase.unwrap_or_default() },
        address: address.map(|address| SocketAddr::new(address, STATUS_PORT)),
        is_ready: conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"),
        restarts: containers.iter().map(|container| container.restart_count).sum(),
        age_seconds: born.map_or(0, |born| jiff::Timestamp::now().as_second().saturating_sub(born)),
        trouble: pods::pod_problem(&pod),
        report,
    }
}

/// The counters of a pipeline, by its id in configurations, `traces/backend`, and its uid. None if no collector
/// that responds knows it.
pub(crate) fn sum_totals(collectors: &[CollectorInstance], id: &str, uid: &str) -> Option<PipelineTotals> {
    let reports = collectors.iter().filter_map(|collector| collector.report.as_ref().ok()?.pipelines.get(id));
    // Skip reports of an earlier pipeline of the same name.
    let reports = reports.filter(|report| report.matches_uid(Some(uid)));
    let add = |totals: Option<PipelineTotals>, report: &PipelineReport| {
        let totals = totals.unwrap_or_default();
        let exporters = || report.exporters.values();
        Some(PipelineTotals {
            received: totals.received.saturating_add(report.received),
            sent: totals.sent.saturating_add(report.delivered),
            dropped: report.dropped.values().fold(totals.dropped, |sum, count| sum.saturating_add(*count)),
            queued: exporters().fold(totals.queued, |sum, it| sum.saturating_add(it.queue_size)),
            queue_capacity: exporters().fold(totals.queue_capacity, |sum, it| sum.saturating_add(it.queue_capacity)),
        })
    };
    let mut totals = reports.fold(None, add)?;
    totals.dropped = totals.dropped.saturating_add(dropped_elsewhere(collectors, uid));
    Some(totals)
}

/// Data of a pipeline that was lost outside of it: on the way between collectors, or by pipelines that are no
/// longer configured.
pub(crate) fn dropped_elsewhere(collectors: &[CollectorInstance], uid: &str) -> u64 {
    let statuses = collectors.iter().filter_map(|collector| collector.report.as_ref().ok());
    statuses.fold(0, |sum, status| sum.saturating_add(status.dropped_elsewhere(uid)))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use kubewake_status::EndedPipelineReport;

    use super::*;

    /// A running collector with this report.
    pub(crate) fn collector(pod: &str, report: Result<CollectorStatus, String>) -> CollectorInstance {
        CollectorInstance {
            namespace: "kubewake-system".to_owned(),
            pod: pod.to_owned(),
            tier: "gateway",
            phase: "Running".to_owned(),
            address: None,
            is_ready: true,
            restarts: 0,
            age_seconds: 90,
            trouble: None,
            report,
        }
    }

    /// A status with one pipeline.
    pub(crate) fn report(id: &str, received: u64, delivered: u64, lost: u64) -> CollectorStatus {
        let text = serde_json::json!({"version": "0.1.0", "phase": "ready", "new": {}, "pipelines": {id: {
            "received": received, "delivered": delivered, "dropped": {"queue_full": lost, "refused": 0}, "diagnosis": "X",
            "exporters": {"otlp_grpc/traces-a": {"queue_size": 1024, "queue_capacity": 4096}},
        }}});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn the_figures_of_all_collectors_are_added_up() {
        let collectors = [
            collector("a", Ok(report("traces/a", 5, 4, 1))),
            collector("b", Ok(report("traces/a", 3, 3, 0))),
            collector("c", Err("gone".to_owned())),
        ];
        let totals = sum_totals(&collectors, "traces/a", "one");
        let expected = PipelineTotals { received: 8, sent: 7, dropped: 1, queued: 2048, queue_capacity: 8192 };
        assert_eq!(totals, Some(expected));
        assert_eq!(super::sum_totals(&collectors, "traces/b", "one"), None);
    }

    #[test]
    fn losses_between_collectors_and_of_earlier_documents_are_those_of_the_pipeline() {
        let mut gateway = report("traces/_sticky", 9, 7, 2);
        gateway.pipelines.get_mut("traces/_sticky").unwrap().carries = vec!["one".to_owned()];
        let lost = |uid: Option<&str>, carries: &[&str], items| EndedPipelineReport {
            uid: uid.map(str::to_owned),
            carries: carries.iter().map(|uid| (*uid).to_owned()).collect(),
            dropped: BTreeMap::from([("shutdown".to_owned(), items)]),
            ..EndedPipelineReport::default()
        };
        gateway.ended =
            vec![lost(None, &["one", "two"], 200), lost(Some("one"), &[], 30), lost(Some("two"), &[], 4000)];
        let collectors = [collector("gateway", Ok(gateway)), collector("sticky", Ok(report("traces/a", 7, 6, 1)))];
        assert_eq!(dropped_elsewhere(&collectors, "one"), 2 + 200 + 30);
        assert_eq!(sum_totals(&collectors, "traces/a", "one").unwrap().dropped, 1 + 2 + 200 + 30);
    }

    #[test]
    fn the_figures_of_one_that_had_the_name_before_are_not_its_own() {
        let of = |uid: &str, received| {
            let mut report = report("traces/a", received, 0, 0);
            report.pipelines.get_mut("traces/a").unwrap().uid = Some(uid.to_owned());
            collector(uid, Ok(report))
        };
        let collectors = [of("old", 5), of("new", 3)];
        assert_eq!(sum_totals(&collectors, "traces/a", "new").unwrap().received, 3);
        assert_eq!(sum_totals(&collectors, "traces/a", "newest"), None);
    }
}
