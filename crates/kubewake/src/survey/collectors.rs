//! The collectors' pods, and what each of them says.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use kubewake_api::render::HEALTH_PORT;
use kubewake_operator::{delivery::judge::Tier, names};
use serde::Deserialize;

use super::pods;
use crate::web::Web;

/// It is made from counters. Whoever takes longer cannot be reached from here.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many are asked at once.
const AT_ONCE: usize = 16;

/// A collector's pod.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    pub(crate) pod: String,
    /// `gateway` or `sticky`.
    pub(crate) tier: &'static str,
    pub(crate) phase: String,
    /// Where it says how it is.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) is_ready: bool,
    pub(crate) restarts: i32,
    pub(crate) age_seconds: i64,
    /// Why it does not start or ended, if the scheduler or the kubelet says so: `ImagePullBackOff: image …`.
    pub(crate) trouble: Option<String>,
    /// What it says, or why that could not be seen.
    pub(crate) report: Result<Report, String>,
}

/// The `/status` of a collector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Report {
    pub(crate) version: String,
    pub(crate) phase: String,
    pub(crate) refused: Option<Refused>,
    pub(crate) pipelines: BTreeMap<String, PipelineReport>,
    /// Pipelines that its document does not have any more, and that lost something.
    pub(crate) ended: Vec<EndedReport>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EndedReport {
    pub(crate) uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carried data.
    pub(crate) carries: Vec<String>,
    pub(crate) dropped: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Refused {
    pub(crate) reasons: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PipelineReport {
    /// Which one it is of all that have had its id; an old collector does not say.
    pub(crate) uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carries data.
    pub(crate) carries: Vec<String>,
    pub(crate) received: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: BTreeMap<String, u64>,
    pub(crate) exporters: BTreeMap<String, ExporterReport>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExporterReport {
    pub(crate) queue_size: u64,
    pub(crate) queue_capacity: u64,
}

/// The figures of a pipeline, all collectors together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) dropped: u64,
    pub(crate) queued: u64,
    pub(crate) queue_capacity: u64,
}

/// All of them, asked.
pub(crate) async fn all(client: &Client, namespace: &str) -> Result<Vec<Collector>, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default().labels(&names::of_collectors())).await?;
    let web = Web::new(PATIENCE);
    let asked = pods.items.into_iter().filter_map(|pod| {
        let tier = Tier::of(pod.labels().get(names::NAME)?)?;
        Some(collector(client, &web, tier, pod))
    });
    // The futures are made first: a stream over a lazy map would borrow for too short a time.
    let asked: Vec<_> = asked.collect();
    let mut all: Vec<Collector> = stream::iter(asked).buffer_unordered(AT_ONCE).collect().await;
    all.sort_by(|a, b| a.pod.cmp(&b.pod));
    Ok(all)
}

async fn collector(client: &Client, web: &Web, tier: Tier, pod: Pod) -> Collector {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ends = pod.metadata.deletion_timestamp.is_some();
    let address = status.pod_ip.as_deref().and_then(|address| address.parse().ok());
    let address = address.map(|address| SocketAddr::new(address, HEALTH_PORT));
    let report = match status.phase.as_deref() == Some("Running") && !ends {
        true => ask(client, web, &pod, address).await,
        false => Err("it does not run".to_owned()),
    };
    let born = pod.metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
    Collector {
        pod: pod.name_any(),
        tier: match tier {
            Tier::Gateway => "gateway",
            Tier::Sticky => "sticky",
        },
        phase: if ends { "Terminating".to_owned() } else { status.phase.unwrap_or_default() },
        address,
        is_ready: conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"),
        restarts: containers.iter().map(|container| container.restart_count).sum(),
        age_seconds: born.map_or(0, |born| jiff::Timestamp::now().as_second().saturating_sub(born)),
        trouble: pods::trouble(&pod),
        report,
    }
}

/// By its address; where that leads nowhere from here, through the API server.
async fn ask(client: &Client, web: &Web, pod: &Pod, address: Option<SocketAddr>) -> Result<Report, String> {
    let Some(address) = address else { return Err("it has no address".to_owned()) };
    let direct = match web.get(&format!("http://{address}/status")).await {
        Ok(report) => return Ok(report),
        Err(error) => error,
    };
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{HEALTH_PORT}/proxy/status");
    let proxied = match http::Request::get(path).body(Vec::new()) {
        Ok(request) => tokio::time::timeout(PATIENCE, client.request::<Report>(request)).await,
        Err(error) => return Err(error.to_string()),
    };
    match proxied {
        Ok(Ok(report)) => Ok(report),
        _ => Err(format!("at {address} {direct}; and not through the API server either")),
    }
}

/// The figures of a pipeline, by its id in documents, `traces/backend`, and its uid. None if no collector that answers knows it.
pub(crate) fn totals(collectors: &[Collector], id: &str, uid: &str) -> Option<Totals> {
    let reports = collectors.iter().filter_map(|collector| collector.report.as_ref().ok()?.pipelines.get(id));
    // One that had its name before is not this one.
    let reports = reports.filter(|report| report.uid.as_deref().is_none_or(|of| of == uid));
    let add = |totals: Option<Totals>, report: &PipelineReport| {
        let totals = totals.unwrap_or_default();
        let exporters = || report.exporters.values();
        Some(Totals {
            received: totals.received.saturating_add(report.received),
            sent: totals.sent.saturating_add(report.delivered),
            dropped: report.dropped.values().fold(totals.dropped, |sum, count| sum.saturating_add(*count)),
            queued: exporters().fold(totals.queued, |sum, it| sum.saturating_add(it.queue_size)),
            queue_capacity: exporters().fold(totals.queue_capacity, |sum, it| sum.saturating_add(it.queue_capacity)),
        })
    };
    let mut totals = reports.fold(None, add)?;
    totals.dropped = totals.dropped.saturating_add(lost_elsewhere(collectors, uid));
    Some(totals)
}

/// What was lost of a pipeline by others than itself: on the way from one collector to another, and by what a document had before.
pub(crate) fn lost_elsewhere(collectors: &[Collector], uid: &str) -> u64 {
    let is_of = |of: Option<&str>, carries: &[String]| of == Some(uid) || carries.iter().any(|of| of == uid);
    let reports = || collectors.iter().filter_map(|collector| collector.report.as_ref().ok());
    let carriers = reports().flat_map(|report| report.pipelines.values()).filter(|it| is_of(None, &it.carries));
    let ended = reports().flat_map(|report| &report.ended).filter(|it| is_of(it.uid.as_deref(), &it.carries));
    let dropped = carriers.map(|it| &it.dropped).chain(ended.map(|it| &it.dropped));
    dropped.flat_map(BTreeMap::values).fold(0, |sum, count| sum.saturating_add(*count))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A collector that is well and says this.
    pub(crate) fn collector(pod: &str, report: Result<Report, String>) -> Collector {
        Collector {
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

    /// What it says of one pipeline.
    pub(crate) fn report(id: &str, received: u64, delivered: u64, lost: u64) -> Report {
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
        let totals = totals(&collectors, "traces/a", "one");
        let expected = Totals { received: 8, sent: 7, dropped: 1, queued: 2048, queue_capacity: 8192 };
        assert_eq!(totals, Some(expected));
        assert_eq!(super::totals(&collectors, "traces/b", "one"), None);
    }

    #[test]
    fn losses_between_collectors_and_of_earlier_documents_are_those_of_the_pipeline() {
        let mut gateway = report("traces/_sticky", 9, 7, 2);
        gateway.pipelines.get_mut("traces/_sticky").unwrap().carries = vec!["one".to_owned()];
        let lost = |uid: Option<&str>, carries: &[&str], items| EndedReport {
            uid: uid.map(str::to_owned),
            carries: carries.iter().map(|uid| (*uid).to_owned()).collect(),
            dropped: BTreeMap::from([("shutdown".to_owned(), items)]),
        };
        gateway.ended =
            vec![lost(None, &["one", "two"], 200), lost(Some("one"), &[], 30), lost(Some("two"), &[], 4000)];
        let collectors = [collector("gateway", Ok(gateway)), collector("sticky", Ok(report("traces/a", 7, 6, 1)))];
        assert_eq!(lost_elsewhere(&collectors, "one"), 2 + 200 + 30);
        assert_eq!(totals(&collectors, "traces/a", "one").unwrap().dropped, 1 + 2 + 200 + 30);
    }

    #[test]
    fn the_figures_of_one_that_had_the_name_before_are_not_its_own() {
        let of = |uid: &str, received| {
            let mut report = report("traces/a", received, 0, 0);
            report.pipelines.get_mut("traces/a").unwrap().uid = Some(uid.to_owned());
            collector(uid, Ok(report))
        };
        let collectors = [of("old", 5), of("new", 3)];
        assert_eq!(totals(&collectors, "traces/a", "new").unwrap().received, 3);
        assert_eq!(totals(&collectors, "traces/a", "newest"), None);
    }
}
