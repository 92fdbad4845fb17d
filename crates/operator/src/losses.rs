//! What collectors dropped when they ended, as their pods' statuses tell.
//!
//! A collector that has ended cannot be asked any more. So it leaves its losses in the termination message of its container, which the kubelet copies into the pod's
//! status before the pod is removed, and every event of a pod is looked at for it. *Guaranteed*: each end of a container counts once for each pipeline as long as this
//! operator leads; what was counted is in the status of the pipeline, with the time of the last, so that another operator does not count it again.
//! *Not done*: what a collector could not write, as it was killed, is not known. Nor is what happened to a pod that came and went while no operator ran.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ContainerStateTerminated, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt as _;
use kubewake_api::v1alpha1::ShutdownDrops;
use serde::Deserialize;

use crate::{bell::Bell, delivery::judge::Tier, names};

/// How long a loss is said to be a recent one; collectors do so for as long with theirs.
pub const LATELY: jiff::SignedDuration = jiff::SignedDuration::from_secs(300);
/// More than end at once in any cluster. What is forgotten first are the oldest.
const MAX_ENDS: usize = 10_000;
/// A kubelet keeps no longer message.
const MAX_MESSAGE: usize = 4096;

/// The last words of a collector.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndReport {
    dropped: Vec<Lost>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lost {
    uid: Option<String>,
    carries: Vec<String>,
    items: u64,
}

/// Losses that are not part of a pipeline's status yet.
#[derive(Debug, Default)]
struct Known {
    /// Ends of containers that were looked at: the uid of the pod, and when it ended.
    ends: BTreeSet<(String, Timestamp)>,
    order: VecDeque<(String, Timestamp)>,
    /// By the uid of the pipeline.
    uncounted: BTreeMap<String, Vec<Loss>>,
}

/// What one collector dropped of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How many items.
    pub items: u64,
    /// When the collector ended.
    pub at: Timestamp,
    /// Whether that was before this operator led: the one before it may have counted it.
    pub is_old: bool,
}

/// What collectors dropped when they ended.
#[derive(Debug)]
pub struct Losses {
    known: Mutex<Known>,
    started: Timestamp,
    bell: Bell,
}

impl Losses {
    /// None yet. The bell rings when that changes.
    pub fn new(bell: Bell) -> Self {
        Self { known: Mutex::default(), started: Timestamp::now(), bell }
    }

    /// Looks at a pod for the last words of its containers.
    pub fn observe(&self, pod: &Pod) {
        let (Some(uid), Some(_)) = (pod.uid(), pod.labels().get(names::NAME).and_then(|name| Tier::of(name))) else {
            return;
        };
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let states = statuses.flat_map(|status| [&status.state, &status.last_state]).flatten();
        for end in states.filter_map(|state| state.terminated.as_ref()) {
            self.observe_end(&uid, end);
        }
    }

    fn observe_end(&self, pod: &str, end: &ContainerStateTerminated) {
        let Some(Time(at)) = end.finished_at else { return };
        let message = end.message.as_deref().filter(|message| message.len() <= MAX_MESSAGE).unwrap_or_default();
        // Whoever else writes there is no collector.
        let Ok(report) = serde_json::from_str::<EndReport>(message) else { return };
        let (mut known, is_old) = (self.known(), at < self.started);
        if report.dropped.is_empty() || !known.is_new((pod.to_owned(), at)) {
            return;
        }
        for lost in report.dropped.into_iter().filter(|lost| lost.items > 0) {
            for pipeline in lost.uid.into_iter().chain(lost.carries) {
                known.uncounted.entry(pipeline).or_default().push(Loss { items: lost.items, at, is_old });
            }
        }
        drop(known);
        self.bell.ring();
    }

    /// What is not part of the status of the pipeline of this uid.
    pub fn uncounted(&self, uid: &str) -> Vec<Loss> {
        self.known().uncounted.get(uid).cloned().unwrap_or_default()
    }

    /// The first so many of these are part of its status now.
    pub fn counted(&self, uid: &str, count: usize) {
        let mut known = self.known();
        if let Some(losses) = known.uncounted.get_mut(uid) {
            losses.drain(..count.min(losses.len()));
        }
        known.uncounted.retain(|_, losses| !losses.is_empty());
    }

    /// Forgets what concerns no pipeline that is there.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.known().uncounted.retain(|uid, _| is_there(uid));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_new(&mut self, end: (String, Timestamp)) -> bool {
        let is_new = self.ends.insert(end.clone());
        if is_new {
            self.order.push_back(end);
        }
        while self.order.len() > MAX_ENDS {
            self.order.pop_front().iter().for_each(|oldest| _ = self.ends.remove(oldest));
        }
        is_new
    }
}

/// What the status says after these, given what it said before. What ended up to the last that is counted, before this operator led, was counted by the one before it.
pub fn total(before: Option<&ShutdownDrops>, losses: &[Loss]) -> Option<ShutdownDrops> {
    let counted = before.map_or(Timestamp::MIN, |before| before.last_time.0);
    let new: Vec<&Loss> = losses.iter().filter(|loss| !loss.is_old || loss.at > counted).collect();
    let Some(last) = new.iter().map(|loss| loss.at).max() else { return before.cloned() };
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

    fn items(losses: &Losses, uid: &str) -> Vec<u64> {
        losses.uncounted(uid).iter().map(|loss| loss.items).collect()
    }

    #[test]
    fn end_of_a_collector_counts_once_for_each_pipeline_that_lost_something() {
        let losses = Losses::new(Bell::default());
        let first = pod(&message(json!("one"), &[], 5), "2026-01-01T00:00:00Z");
        losses.observe(&first);
        losses.observe(&first);
        assert_eq!(items(&losses, "one"), [5], "an end is seen several times");
        losses.observe(&pod(&message(Value::Null, &["one", "two"], 7), "2026-01-01T00:00:01Z"));
        assert_eq!((items(&losses, "one"), items(&losses, "two")), (vec![5, 7], vec![7]));
        losses.counted("one", 1);
        assert_eq!(items(&losses, "one"), [7]);
        losses.retain(|uid| uid == "two");
        assert_eq!((items(&losses, "one"), items(&losses, "two")), (vec![], vec![7]));
    }

    #[test]
    fn last_words_of_anything_else_are_passed_over() {
        let losses = Losses::new(Bell::default());
        let long = format!("{}{}", message(json!("one"), &[], 5), " ".repeat(MAX_MESSAGE));
        for text in ["", "no", "[]", "{}", "{\"dropped\": 1}", &message(json!("one"), &[], 0), &long] {
            losses.observe(&pod(text, "2026-01-01T00:00:00Z"));
        }
        let mut other = pod(&message(json!("one"), &[], 5), "2026-01-01T00:00:00Z");
        other.metadata.labels = None;
        losses.observe(&other);
        assert!(losses.uncounted("one").is_empty());
    }

    #[test]
    fn total_grows_by_what_ended_since() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let drops = |items, second| Some(ShutdownDrops { items, last_time: Time(at(second)) });
        assert_eq!(total(None, &[]), None);
        let old = |items, second| Loss { items, at: at(second), is_old: true };
        let losses = [old(3, 5), old(4, 9)];
        assert_eq!(total(None, &losses), drops(7, 9));
        assert_eq!(total(drops(100, 5).as_ref(), &losses), drops(104, 9), "the first was counted before");
        assert_eq!(total(drops(100, 9).as_ref(), &losses), drops(100, 9));
        let live = Loss { is_old: false, ..old(5, 9) };
        assert_eq!(total(drops(100, 9).as_ref(), &[live]), drops(105, 9), "two may end in the same second");
    }
}
