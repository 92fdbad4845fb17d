//! Data that collectors dropped when they ended, as their pods' statuses report it.
//!
//! A collector that has ended cannot be polled any more. So it writes its losses to the termination message of
//! its container, which the kubelet copies into the pod's status before the pod is removed; here every event of
//! a pod is checked for it. *Guaranteed*: while this operator leads, each termination of a container counts
//! once for each pipeline. Counted losses are in the status of the pipeline with the time of the last one, so
//! that another operator does not count them again. A deleted pipeline has no status, so an event about it
//! reports its later losses. *Not done*: losses of a collector that was killed before it wrote them, and of
//! pods that came and went while no operator ran, are unknown.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    pin::pin,
    sync::MutexGuard,
};

use futures_util::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ContainerStateTerminated, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    ResourceExt as _,
    runtime::events::{Event, EventType},
};
use kubewake_api::v1alpha1::ShutdownDrops;
use kubewake_runtime::lock::Mutex;
use kubewake_trail::events::EventPublisher;
use serde::Deserialize;

use crate::{
    context::OperatorState, feedback::delivery::health_assessment::CollectorTier, model::names,
    runtime::resync_trigger::ResyncTrigger,
};

/// How long a loss counts as recent; the same time as in collectors.
pub const RECENT_LOSS_WINDOW: jiff::SignedDuration = jiff::SignedDuration::from_secs(300);
/// More than end at once in any cluster. The oldest are dropped first.
const MAX_TERMINATIONS: usize = 10_000;
/// Kubelets truncate longer messages.
const MAX_TERMINATION_MESSAGE_BYTES: usize = 4096;
/// Deleted pipelines whose collectors may still end.
const MAX_DELETED_PIPELINES: usize = 1000;

/// The termination message of a collector.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TerminationMessage {
    dropped: Vec<TerminationDrop>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TerminationDrop {
    uid: Option<String>,
    carries: Vec<String>,
    items: u64,
}

/// Losses that are not part of a pipeline's status yet.
#[derive(Debug, Default)]
struct LossState {
    /// Terminations that were processed: the uid of the pod, and when the container ended.
    terminations: BTreeSet<(String, Timestamp)>,
    order: VecDeque<(String, Timestamp)>,
    /// Losses that are not counted in a status yet, by the uid of the pipeline.
    uncounted: BTreeMap<String, Vec<ShutdownLoss>>,
    /// Lost items of deleted pipelines that no event has reported yet, by uid.
    unreported: BTreeMap<String, u64>,
}

/// The loss of a pipeline at the end of one collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownLoss {
    pub items: u64,
    pub ended_at: Timestamp,
    /// Whether it was before this operator led: then the one before it may have counted it.
    pub predates_leadership: bool,
}

/// Losses of all pipelines at the end of collectors.
#[derive(Debug)]
pub struct ShutdownLosses {
    known: Mutex<LossState>,
    started: Timestamp,
    resync_trigger: ResyncTrigger,
}

impl ShutdownLosses {
    /// No losses yet. New ones notify the trigger.
    pub fn new(resync_trigger: ResyncTrigger) -> Self {
        Self { known: Mutex::default(), started: Timestamp::now(), resync_trigger }
    }

    /// Processes the termination messages of a pod's containers.
    pub fn observe_pod(&self, pod: &Pod) {
        let (Some(uid), Some(_)) =
            (pod.uid(), pod.labels().get(names::NAME_LABEL).and_then(|name| CollectorTier::from_name(name)))
        else {
            return;
        };
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let states = statuses.flat_map(|status| [&status.state, &status.last_state]).flatten();
        for end in states.filter_map(|state| state.terminated.as_ref()) {
            self.observe_termination(&uid, end);
        }
    }

    fn observe_termination(&self, pod: &str, end: &ContainerStateTerminated) {
        let Some(Time(at)) = end.finished_at else { return };
        let message =
            end.message.as_deref().filter(|message| message.len() <= MAX_TERMINATION_MESSAGE_BYTES).unwrap_or_default();
        // Any other text is not from a collector.
        let Ok(report) = serde_json::from_str::<TerminationMessage>(message) else { return };
        let mut known = self.lock_state();
        // Kubernetes' times are whole seconds.
        let is_old = at.as_second() < self.started.as_second();
        if report.dropped.is_empty() || !known.insert_termination((pod.to_owned(), at)) {
            return;
        }
        for lost in report.dropped.into_iter().filter(|lost| lost.items > 0) {
            for pipeline in lost.uid.into_iter().chain(lost.carries) {
                known.uncounted.entry(pipeline).or_default().push(ShutdownLoss {
                    items: lost.items,
                    ended_at: at,
                    predates_leadership: is_old,
                });
            }
        }
        drop(known);
        self.resync_trigger.notify();
    }

    /// The losses that are not in the status of the pipeline with this uid yet.
    pub fn uncounted(&self, uid: &str) -> Vec<ShutdownLoss> {
        self.lock_state().uncounted.get(uid).cloned().unwrap_or_default()
    }

    /// Marks the first `count` of these as part of its status.
    pub fn mark_counted(&self, uid: &str, count: usize) {
        let mut known = self.lock_state();
        if let Some(losses) = known.uncounted.get_mut(uid) {
            losses.drain(..count.min(losses.len()));
        }
        known.uncounted.retain(|_, losses| !losses.is_empty());
    }

    /// Moves the losses of pipelines that no longer exist to the unreported ones, without those from before
    /// this operator led.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let state = &mut *self.lock_state();
        for (uid, losses) in state.uncounted.extract_if(.., |uid, _| !is_there(uid)) {
            let recent = losses.iter().filter(|loss| !loss.predates_leadership);
            let items = recent.map(|loss| loss.items).fold(0, u64::saturating_add);
            let has_room = state.unreported.len() < MAX_DELETED_PIPELINES || state.unreported.contains_key(&uid);
            if items > 0 && has_room {
                let sum = state.unreported.entry(uid).or_default();
                *sum = sum.saturating_add(items);
            }
        }
    }

    /// Takes the items that deleted pipelines have lost since the last call.
    fn take_unreported(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.lock_state().unreported)
    }

    fn lock_state(&self) -> MutexGuard<'_, LossState> {
        self.known.lock()
    }
}

impl LossState {
    fn insert_termination(&mut self, end: (String, Timestamp)) -> bool {
        let is_new = self.terminations.insert(end.clone());
        if is_new {
            self.order.push_back(end);
        }
        while self.order.len() > MAX_TERMINATIONS {
            self.order.pop_front().iter().for_each(|oldest| _ = self.terminations.remove(oldest));
        }
        is_new
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
pub async fn report_deleted_pipelines(world: &OperatorState, events: &EventPublisher) {
    world.wait_caches_synced().await;
    let mut directory = PipelineDirectory::default();
    let mut triggers = pin!(world.resync_trigger.subscribe());
    loop {
        directory.update(world.pipeline_references());
        world.prune_and_list_pipelines();
        for (uid, items) in world.shutdown_losses.take_unreported() {
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

/// The totals after these losses, given those in the status before. Losses from before this operator led are
/// skipped up to the last time in that status: the operator before it has counted these.
pub fn total_drops(before: Option<&ShutdownDrops>, losses: &[ShutdownLoss]) -> Option<ShutdownDrops> {
    let counted = before.map_or(Timestamp::MIN, |before| before.last_time.0);
    let new: Vec<&ShutdownLoss> =
        losses.iter().filter(|loss| !loss.predates_leadership || loss.ended_at > counted).collect();
    let Some(last) = new.iter().map(|loss| loss.ended_at).max() else { return before.cloned() };
    let items = new.iter().fold(0_u64, |sum, loss| sum.saturating_add(loss.items));
    let items = i64::try_from(items).unwrap_or(i64::MAX);
    let last = last.max(counted);
    Some(ShutdownDrops { items: before.map_or(0, |before| before.items).saturating_add(items), last_time: Time(last) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(message: &str, finished: &str) -> Pod {
        let ended = json!({"terminated": {"exitCode": 0, "finishedAt": finished, "message": message}});
        serde_json::from_value(json!({
            "metadata": {"name": "gateway", "uid": "pod", "labels": {"app.kubernetes.io/name": "kubewake-gateway"}},
            "status": {"containerStatuses": [{
                "name": "collector", "image": "any", "imageID": "", "ready": false, "restartCount": 0, "state": ended,
            }]},
        }))
        .unwrap()
    }

    fn message(uid: Value, carries: &[&str], items: u64) -> String {
        let lost = json!({"items": items, "reason": "shutdown", "id": "traces/a", "uid": uid, "carries": carries});
        json!({"dropped": [lost]}).to_string()
    }

    fn items(losses: &ShutdownLosses, uid: &str) -> Vec<u64> {
        losses.uncounted(uid).iter().map(|loss| loss.items).collect()
    }

    #[test]
    fn end_of_a_collector_counts_once_for_each_pipeline_that_lost_something() {
        let losses = ShutdownLosses::new(ResyncTrigger::default());
        let first = pod(&message(json!("one"), &[], 5), "2026-01-01T00:00:00Z");
        losses.observe_pod(&first);
        losses.observe_pod(&first);
        assert_eq!(items(&losses, "one"), [5], "an end is seen several times");
        losses.observe_pod(&pod(&message(Value::Null, &["one", "two"], 7), "2026-01-01T00:00:01Z"));
        assert_eq!((items(&losses, "one"), items(&losses, "two")), (vec![5, 7], vec![7]));
        losses.mark_counted("one", 1);
        assert_eq!(items(&losses, "one"), [7]);
        losses.retain(|uid| uid == "two");
        assert_eq!((items(&losses, "one"), items(&losses, "two")), (vec![], vec![7]));
    }

    #[test]
    fn losses_of_a_deleted_pipeline_are_told_once_with_its_name() {
        let losses = ShutdownLosses::new(ResyncTrigger::default());
        losses.observe_pod(&pod(&message(json!("gone"), &[], 5), "2026-01-01T00:00:00Z"));
        losses.retain(|_| false);
        assert_eq!(losses.take_unreported(), BTreeMap::new(), "that was before this operator led");
        for (items, ended) in [(5, "2099-01-01T00:00:00Z"), (7, "2099-01-01T00:00:01Z")] {
            losses.observe_pod(&pod(&message(json!("gone"), &["stays"], items), ended));
            losses.retain(|uid| uid == "stays");
        }
        assert_eq!(losses.take_unreported(), BTreeMap::from([("gone".to_owned(), 12)]));
        assert_eq!(losses.take_unreported(), BTreeMap::new());
        assert_eq!(items(&losses, "stays"), [5, 7]);

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

    #[test]
    fn last_words_of_anything_else_are_passed_over() {
        let losses = ShutdownLosses::new(ResyncTrigger::default());
        let long = format!("{}{}", message(json!("one"), &[], 5), " ".repeat(MAX_TERMINATION_MESSAGE_BYTES));
        for text in ["", "no", "[]", "{}", "{\"dropped\": 1}", &message(json!("one"), &[], 0), &long] {
            losses.observe_pod(&pod(text, "2026-01-01T00:00:00Z"));
        }
        let mut other = pod(&message(json!("one"), &[], 5), "2026-01-01T00:00:00Z");
        other.metadata.labels = None;
        losses.observe_pod(&other);
        assert!(losses.uncounted("one").is_empty());
    }

    #[test]
    fn total_grows_by_what_ended_since() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let drops = |items, second| Some(ShutdownDrops { items, last_time: Time(at(second)) });
        assert_eq!(total_drops(None, &[]), None);
        let old = |items, second| ShutdownLoss { items, ended_at: at(second), predates_leadership: true };
        let losses = [old(3, 5), old(4, 9)];
        assert_eq!(total_drops(None, &losses), drops(7, 9));
        assert_eq!(total_drops(drops(100, 5).as_ref(), &losses), drops(104, 9), "the first was counted before");
        assert_eq!(total_drops(drops(100, 9).as_ref(), &losses), drops(100, 9));
        let live = ShutdownLoss { predates_leadership: false, ..old(5, 9) };
        assert_eq!(total_drops(drops(100, 9).as_ref(), &[live]), drops(105, 9), "two may end in the same second");
    }
}
