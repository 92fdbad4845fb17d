//! Whether the collectors run.
//!
//! What pods wait for in the ordinary course of a rollout is no trouble: that they are made, and that a node has room when a pod that is ending has gone. Trouble
//! is what the scheduler or a node says of a pod, and what the Deployment says when it has waited for too long.

use std::{cmp::Reverse, fmt};

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt as _, runtime::reflector::Store};
use serde_json::Value;

use crate::{kind::Kind, live::Live, names};

#[cfg(test)]
mod tests;

/// What a container waits for in the ordinary course of things.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// What the scheduler says of a pod that no node has room for. There are other reasons for which it has none yet, and these pass.
const NO_ROOM: &str = "Unschedulable";
/// What is said of an image that is not there, by turns.
const NO_IMAGE: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"];

/// How many collectors there are of each tier that is needed: that of the gateway, and the sticky one where traces wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collectors {
    /// At least one, so that what holds for all holds for somebody.
    tiers: Vec<Tier>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tier {
    name: &'static str,
    is_there: bool,
    ready: i64,
    wanted: i64,
    /// Why there are not more, if somebody says so.
    trouble: Option<Trouble>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Trouble {
    words: String,
    /// Whether it is to be said of the whole. It may pass all the same: there are clusters that grow.
    is_stuck: bool,
}

impl Collectors {
    /// The collectors that carry a pipeline, those of the sticky tier included if it has traces wait.
    pub fn of(live: &Live, is_sticky: bool) -> Self {
        let gateway = Tier::new(names::GATEWAY, live.get(Kind::Deployment, names::GATEWAY).as_deref());
        let sticky = is_sticky.then(|| Tier::new(names::STICKY, live.get(Kind::StatefulSet, names::STICKY).as_deref()));
        Self { tiers: [gateway].into_iter().chain(sticky).collect() }
    }

    /// The same, with what their pods say: a new one that does not start is no news to anybody else for ten minutes, as those before it go on.
    pub fn with(mut self, pods: &Store<Pod>) -> Self {
        let pods = pods.state();
        let some_end = pods.iter().any(|pod| pod.metadata.deletion_timestamp.is_some());
        for tier in &mut self.tiers {
            let of_tier = |pod: &&Pod| pod.labels().get(names::NAME).is_some_and(|name| name == tier.name);
            let found = pods.iter().map(|pod| &**pod).filter(of_tier).filter_map(|pod| trouble(pod, some_end));
            // Of several always the same one, as it would be news otherwise.
            let found = found.min_by_key(|it| (Reverse(it.is_stuck), it.words.clone()));
            tier.trouble = match (found, tier.trouble.take()) {
                (Some(found), Some(whole)) if whole.is_stuck && !found.is_stuck => Some(whole),
                (found, whole) => found.or(whole),
            };
        }
        self
    }

    /// Whether some do not start, and none that end will make room for them.
    pub fn are_stuck(&self) -> bool {
        self.tiers.iter().any(|tier| tier.trouble.as_ref().is_some_and(|trouble| trouble.is_stuck))
    }

    /// The same, and one more does not start.
    #[cfg(test)]
    pub(crate) fn stuck(mut self) -> Self {
        let trouble = Trouble { words: "no image".to_owned(), is_stuck: true };
        self.tiers.iter_mut().for_each(|tier| tier.trouble = Some(trouble.clone()));
        self
    }

    /// So many of the gateway, of so many.
    #[cfg(test)]
    pub(crate) fn example(ready: i64, wanted: i64) -> Self {
        Self { tiers: vec![Tier { name: names::GATEWAY, is_there: true, ready, wanted, trouble: None }] }
    }

    /// None at all of a gateway.
    #[cfg(test)]
    pub(crate) fn missing() -> Self {
        Self { tiers: vec![Tier::new(names::GATEWAY, None)] }
    }

    /// Whether there is something of each tier, be it that nothing of it runs.
    pub fn are_there(&self) -> bool {
        self.tiers.iter().all(|tier| tier.is_there)
    }

    /// Whether one of each tier takes data.
    pub fn work(&self) -> bool {
        self.tiers.iter().all(|tier| tier.ready > 0)
    }

    /// In words.
    pub fn describe(&self) -> String {
        let tiers = self.tiers.iter().map(|tier| {
            let trouble = tier.trouble.as_ref().map(|it| format!(" ({})", it.words)).unwrap_or_default();
            format!("{} of {} collectors of {} are ready{trouble}", tier.ready, tier.wanted, tier.name)
        });
        tiers.collect::<Vec<_>>().join("; ")
    }
}

/// `2/3`
impl fmt::Display for Collectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: fn(&Tier) -> i64| self.tiers.iter().map(of).sum::<i64>();
        write!(f, "{}/{}", sum(|tier| tier.ready), sum(|tier| tier.wanted))
    }
}

impl Tier {
    fn new(name: &'static str, workload: Option<&Value>) -> Self {
        let number = |pointer: &str| workload.and_then(|it| it.pointer(pointer)).and_then(Value::as_i64);
        let conditions = workload.and_then(|it| it.pointer("/status/conditions")?.as_array());
        let is_trouble = |it: &&Value| {
            let is = |key: &str, value: &str| it.get(key).and_then(Value::as_str) == Some(value);
            is("type", "ReplicaFailure") && is("status", "True") || is("type", "Progressing") && is("status", "False")
        };
        let trouble = conditions.into_iter().flatten().find(is_trouble);
        Self {
            name,
            is_there: workload.is_some(),
            ready: number("/status/readyReplicas").unwrap_or(0),
            wanted: number("/spec/replicas").unwrap_or(0),
            trouble: trouble
                .and_then(|it| it.get("message")?.as_str())
                .map(|words| Trouble { words: words.to_owned(), is_stuck: true }),
        }
    }
}

/// Why a pod does not start, if it does not. Those that end will make room.
fn trouble(pod: &Pod, some_end: bool) -> Option<Trouble> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = pod.status.as_ref()?;
    let unschedulable =
        status.conditions.iter().flatten().find(|it| it.type_ == "PodScheduled" && it.status == "False");
    if let Some(condition) = unschedulable {
        let why = condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or("nobody says why");
        let is_stuck = condition.reason.as_deref() == Some(NO_ROOM) && !some_end;
        return Some(Trouble { words: format!("the pod {} has no node: {why}", pod.name_any()), is_stuck });
    }
    let containers = status.container_statuses.iter().flatten();
    let waits = containers.filter_map(|it| Some((it, it.state.as_ref()?.waiting.as_ref()?.reason.as_deref()?)));
    let (container, reason) = waits.into_iter().find(|(_, reason)| !USUAL.contains(reason))?;
    let why = if NO_IMAGE.contains(&reason) {
        format!("the image {} cannot be pulled", container.image)
    } else {
        reason.to_owned()
    };
    Some(Trouble { words: format!("the pod {} does not start: {why}", pod.name_any()), is_stuck: true })
}
