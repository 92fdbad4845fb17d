//! What is kept of the cluster, in bounded memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use kubewake_config::model::Owner;
use tokio::time::Instant;

use super::{
    cluster::Kind,
    rules::{Attributes, Known},
};

/// About a hundred thousand pods with a handful of labels each. A cluster of Kubernetes has at most 150 000.
pub(super) const MAX_HELD: usize = 128 << 20;

/// What is kept.
#[derive(Default)]
pub(super) struct State {
    /// By uid.
    pub(super) pods: HashMap<String, Arc<Known>>,
    /// By what they are found.
    index: HashMap<Box<[u8]>, Arc<Known>>,
    /// Pods that are gone, and until when they are remembered.
    pub(super) leaving: VecDeque<(Instant, String)>,
    /// Labels and annotations of others, by their kind and name.
    pub(super) others: HashMap<(Owner, String), Other>,
    /// Who made what makes pods, by uid: the Deployment of a ReplicaSet, the CronJob of a Job.
    pub(super) makers: HashMap<String, Maker>,
    pub(super) held: usize,
}

/// Who made something.
pub(super) struct Maker {
    /// What it made.
    pub(super) of: Kind,
    pub(super) name: String,
    pub(super) uid: String,
}

/// What is kept of an object that is no pod.
pub(super) struct Other {
    pub(super) uid: String,
    pub(super) attributes: Attributes,
}

impl State {
    /// The pod with this identifier.
    pub(super) fn find(&self, identifier: &[u8]) -> Option<&Arc<Known>> {
        self.index.get(identifier)
    }

    /// What labels and annotations of another object give.
    pub(super) fn attributes(&self, kind: Owner, name: String) -> Option<&Attributes> {
        self.others.get(&(kind, name)).map(|other| &other.attributes)
    }

    /// The uid of another object.
    pub(super) fn uid(&self, kind: Owner, name: &str) -> Option<&str> {
        self.others.get(&(kind, name.to_owned())).map(|other| &*other.uid)
    }

    /// Who made something.
    pub(super) fn maker(&self, uid: &str) -> Option<&Maker> {
        self.makers.get(uid)
    }

    pub(super) fn set_pod(&mut self, pod: Known) -> bool {
        let uid = pod.uid.clone();
        self.leaving.retain(|(_, gone)| *gone != uid);
        let old = self.pods.remove(&uid);
        if let Some(old) = &old {
            self.unindex(old);
        }
        if self.held + pod.size > MAX_HELD {
            return false;
        }
        let pod = Arc::new(pod);
        self.held += pod.size;
        for identifier in &pod.identifiers {
            // An address may have gone from one pod to another, and the news of the two come in any order.
            let newer = self.index.get(identifier).is_some_and(|other| other.started > pod.started);
            if !newer {
                self.index.insert(identifier.clone(), pod.clone());
            }
        }
        self.pods.insert(uid, pod);
        true
    }

    fn unindex(&mut self, pod: &Arc<Known>) {
        self.held -= pod.size.min(self.held);
        for identifier in &pod.identifiers {
            if self.index.get(identifier).is_some_and(|found| Arc::ptr_eq(found, pod)) {
                self.index.remove(identifier);
            }
        }
    }

    pub(super) fn remove_pod(&mut self, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            self.unindex(&pod);
        }
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some((until, uid)) = self.leaving.pop_front() {
            if until > now {
                self.leaving.push_front((until, uid));
                return;
            }
            self.remove_pod(&uid);
        }
    }
}
