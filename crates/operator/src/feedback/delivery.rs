//! Polls the collectors' `/status` every two seconds, and derives the delivery health of each pipeline from
//! all responses together.
//!
//! - [`document_history`]: which documents there are, and the section of each pipeline in them;
//! - [`health_assessment`]: the health of each pipeline, pure; [`debounce`]: when a change of it is
//!   published.
//!
//! *Guaranteed*: requests take bounded time and memory, and their number in flight is bounded. Messages
//! consist of words of this program, codes, and a collector's clipped reason for refusing a document. A
//! collector that does not answer counts as absent. *Not done*: nothing is written here. Results go to
//! [`DeliveryHealthCache`](crate::feedback::delivery_health::DeliveryHealthCache), and statuses follow.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kubewake_status::CollectorStatus;
use tokio::time::{MissedTickBehavior, interval};

use self::{
    debounce::HealthDebouncer,
    document_history::DocumentHistory,
    health_assessment::{CollectorAnswer, assess_delivery},
};
use crate::{
    feedback::delivery_health::{DeliveryHealthWriter, ReadDocument},
    model::{
        names::{self, CollectorTier},
        object_kind::ObjectKind,
    },
    objects::object_cache::ObjectCache,
    pipeline::cluster_view::ClusterView,
};

pub mod debounce;
pub mod document_history;
pub mod health_assessment;
mod log_lag;

/// Wrong credentials must show within 15 s, and are published when two rounds saw them.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const MAX_CONCURRENT_REQUESTS: usize = 8;

/// Polls all collectors for ever. This task alone writes the delivery health.
pub async fn poll_collectors(view: &ClusterView, health: &DeliveryHealthWriter) {
    // Includes the pods: before their cache is synced it says nothing about which collectors exist.
    view.wait_synced().await;
    let mut documents = DocumentHistory::default();
    let mut debouncer = HealthDebouncer::default();
    let mut rounds = interval(POLL_INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let (answers, read) = poll_all(&view.pods.all()).await;
        // Read after the responses: so a collector may be behind the desired document, but never ahead of it.
        for tier in CollectorTier::ALL {
            let objects = match tier {
                CollectorTier::Agent => &view.agent_objects,
                CollectorTier::Gateway | CollectorTier::Sticky => &view.objects,
            };
            documents.set_desired(tier, desired_document(objects, tier).as_deref());
        }
        health.set_read_documents(read);
        health.set_health(debouncer.debounce(assess_delivery(&answers, &documents)));
    }
}

/// Asks all collectors. Returns the answers of those that stay, and the document that each one has read,
/// including those that are ending: these still deliver by their document.
async fn poll_all(pods: &[Arc<Pod>]) -> (Vec<CollectorAnswer>, BTreeMap<String, ReadDocument>) {
    let asked = pods.iter().filter_map(|pod| PolledCollector::from_pod(pod));
    let answers = asked.map(|asked| async move {
        let report = kubewake_status_client::fetch_status(asked.address).await;
        let report = report.inspect_err(|error| {
            tracing::debug!(
                kind = "Pod",
                name = asked.name,
                error = error as &dyn std::error::Error,
                "failed to fetch the status of a collector"
            );
        });
        (asked, report.ok())
    });
    let answers: Vec<_> =
        stream::iter(answers.collect::<Vec<_>>()).buffer_unordered(MAX_CONCURRENT_REQUESTS).collect().await;
    let hash = |report: &CollectorStatus| report.revision.as_ref().map(|revision| revision.hash.clone());
    let read = answers.iter().map(|(asked, report)| (asked.uid.clone(), report.as_ref().and_then(hash))).collect();
    let staying = answers.into_iter().filter(|(asked, _)| !asked.is_ending);
    (staying.map(|(asked, report)| CollectorAnswer { tier: asked.tier, node: asked.node, report }).collect(), read)
}

/// A collector that can be polled.
struct PolledCollector {
    tier: CollectorTier,
    node: Option<String>,
    name: String,
    uid: String,
    address: IpAddr,
    is_ending: bool,
}

impl PolledCollector {
    /// `None` if the pod is not running or is no collector's.
    fn from_pod(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref().filter(|status| status.phase.as_deref() == Some("Running"))?;
        Some(Self {
            tier: CollectorTier::from_name(pod.labels().get(names::NAME_LABEL)?)?,
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            name: pod.name_any(),
            uid: pod.uid()?,
            address: status.pod_ip.as_ref()?.parse().ok()?,
            is_ending: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}

/// The document that the collectors of a tier should read.
fn desired_document(objects: &ObjectCache, tier: CollectorTier) -> Option<String> {
    let map = objects.get(ObjectKind::ConfigMap, tier.name())?;
    map.get("data")?.get(names::CONFIG_FILE)?.as_str().map(str::to_owned)
}
