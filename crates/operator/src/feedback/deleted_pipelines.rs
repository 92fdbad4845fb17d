//! Cleanup of the operator's memory after deleted pipelines, and events about data that their collectors dropped
//! later.
//!
//! *Guaranteed*: an event names the pipeline by the reference that it had while it existed. The number of deleted
//! pipelines that are remembered is bounded.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::Arc,
};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use kubewake_trail::events::EventPublisher;

use super::shutdown_losses::{MAX_DELETED_PIPELINES, ShutdownLosses};
use crate::{
    pipeline::{
        cluster_view::ClusterView, pipeline_cache::PipelineCacheWriter, pipeline_stores::PipelineStores,
        source_watcher::SourceWatcher,
    },
    runtime::{metrics::OperatorMetrics, resync_trigger::ResyncTrigger},
};

/// Drops what the operator remembers about pipelines that are gone.
pub struct PipelineCleanup {
    pub pipelines: PipelineStores,
    pub cache: PipelineCacheWriter,
    pub metrics: Arc<OperatorMetrics>,
    pub losses: Arc<ShutdownLosses>,
    pub sources: Arc<SourceWatcher>,
}

impl PipelineCleanup {
    /// Drops validations, metrics, losses and watches of pipelines that are gone.
    pub fn forget_deleted(&self) {
        self.cache.retain_live(|| self.pipelines.live_uids());
        let examined = self.cache.reader().list(&self.pipelines.live_uids());
        self.metrics.retain(|id| examined.contains_key(id));
        let all_uids = self.pipelines.all_uids();
        self.losses.retain(|uid| all_uids.contains(uid));
        self.sources.retain_named(|| self.pipelines.referenced_sources());
    }
}

/// The pipelines that exist, and the last of those that were deleted.
#[derive(Debug, Default)]
struct PipelineDirectory {
    known: BTreeMap<String, ObjectReference>,
    deleted: VecDeque<String>,
}

impl PipelineDirectory {
    /// Updates the pipelines that exist.
    fn update(&mut self, existing: Vec<ObjectReference>) {
        let existing: BTreeMap<_, _> =
            existing.into_iter().filter_map(|pipeline| Some((pipeline.uid.clone()?, pipeline))).collect();
        let gone = self.known.keys().filter(|uid| !existing.contains_key(*uid) && !self.deleted.contains(uid));
        let gone: Vec<String> = gone.cloned().collect();
        self.deleted.extend(gone);
        while self.deleted.len() > MAX_DELETED_PIPELINES {
            self.deleted.pop_front().iter().for_each(|oldest| _ = self.known.remove(oldest));
        }
        self.known.extend(existing);
    }
}

/// Publishes an event for each deleted pipeline whose collectors lost something when they ended. Runs for ever.
pub async fn report_deleted_pipelines(
    view: &ClusterView,
    cleanup: &PipelineCleanup,
    resync_trigger: &ResyncTrigger,
    events: &EventPublisher,
) {
    view.wait_synced().await;
    let mut directory = PipelineDirectory::default();
    let mut triggers = pin!(resync_trigger.subscribe());
    loop {
        directory.update(view.pipelines.object_references());
        cleanup.forget_deleted();
        for (uid, items) in cleanup.losses.take_unreported() {
            let Some(pipeline) = directory.known.get(&uid) else {
                tracing::warn!(uid, items, "collectors dropped data of a deleted pipeline when they terminated");
                continue;
            };
            let kind = pipeline.kind.as_deref();
            let name = pipeline.name.as_deref();
            tracing::warn!(kind, name, items, "collectors dropped data of a deleted pipeline when they terminated");
            if let Err(error) = events.publish(&dropped_event(items), pipeline).await {
                tracing::warn!(kind, name, %error, "failed to publish an event");
            }
        }
        if triggers.next().await.is_none() {
            return;
        }
    }
}

fn dropped_event(items: u64) -> Event {
    Event {
        type_: EventType::Warning,
        reason: "DataDropped".to_owned(),
        note: Some(format!(
            "the pipeline was deleted, and {items} items were dropped: collectors terminated before they delivered all data"
        )),
        action: "Delete".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_pipelines_keep_their_references_up_to_a_bound() {
        let reference = |uid: &str| ObjectReference {
            name: Some("backend".to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        let mut directory = PipelineDirectory::default();
        directory.update(vec![reference("gone")]);
        directory.update(Vec::new());
        assert_eq!(directory.known["gone"].name.as_deref(), Some("backend"));
        for n in 0..MAX_DELETED_PIPELINES {
            directory.update(vec![reference(&n.to_string())]);
        }
        directory.update(Vec::new());
        assert!(
            !directory.known.contains_key("gone") && directory.known.len() == MAX_DELETED_PIPELINES,
            "it is bounded"
        );
    }
}
