//! Records of the cluster's objects, in bounded memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use kubewake_config::model::ExtractFrom;
use tokio::time::Instant;

use super::{
    cluster_cache::WatchedKind,
    extraction_rules::{self, ENTRY_OVERHEAD_BYTES, PodRecord, ResourceAttributes},
};

/// Limit for pods: about a hundred thousand with a handful of labels each. A Kubernetes cluster has at most 150
/// 000 pods. Smaller in tests.
pub(super) const MAX_POD_BYTES: usize = if cfg!(test) { 1 << 20 } else { 128 << 20 };
/// Limit for other objects: about a hundred thousand ReplicaSets, with old revisions, and a handful of labels
/// of controllers. It is separate, since anyone who may create an object chooses its size, and must not leave
/// other users' pods without room.
pub(super) const MAX_OBJECT_BYTES: usize = MAX_POD_BYTES / 4;

#[derive(Default)]
pub(super) struct ClusterObjects {
    pub(super) pods: HashMap<String, Arc<PodRecord>>,
    /// Pods by their identifiers.
    index: HashMap<Box<[u8]>, Arc<PodRecord>>,
    /// Deleted pods, and until when they are remembered.
    pub(super) leaving: VecDeque<(Instant, String)>,
    /// Labels and annotations of other objects, by kind and name.
    others: HashMap<(ExtractFrom, String), ObjectRecord>,
    /// Owners of pod controllers, by uid: the Deployment of a ReplicaSet, the CronJob of a Job.
    workload_owners: HashMap<String, WorkloadOwner>,
    /// Bytes of pods.
    pod_bytes: usize,
    /// Bytes of other objects.
    object_bytes: usize,
}

pub(super) struct WorkloadOwner {
    pub(super) kind: WatchedKind,
    pub(super) name: String,
    pub(super) uid: String,
}

/// The record of an object that is not a pod.
pub(super) struct ObjectRecord {
    pub(super) uid: String,
    pub(super) attributes: ResourceAttributes,
}

impl WorkloadOwner {
    fn size(&self, uid: &str) -> usize {
        uid.len() + self.name.len() + self.uid.len() + ENTRY_OVERHEAD_BYTES * 2
    }
}

impl ObjectRecord {
    fn size(&self, name: &str) -> usize {
        name.len() + self.uid.len() + extraction_rules::measure(&self.attributes) + ENTRY_OVERHEAD_BYTES * 2
    }
}

impl ClusterObjects {
    /// Bytes of all records.
    pub(super) fn held_bytes(&self) -> usize {
        self.pod_bytes + self.object_bytes
    }

    /// The pod with this identifier.
    pub(super) fn find_pod(&self, identifier: &[u8]) -> Option<&Arc<PodRecord>> {
        self.index.get(identifier)
    }

    /// The attributes from another object's labels and annotations.
    pub(super) fn attributes(&self, kind: ExtractFrom, name: String) -> Option<&ResourceAttributes> {
        self.others.get(&(kind, name)).map(|other| &other.attributes)
    }

    /// The uid of another object.
    pub(super) fn uid(&self, kind: ExtractFrom, name: &str) -> Option<&str> {
        self.others.get(&(kind, name.to_owned())).map(|other| &*other.uid)
    }

    pub(super) fn workload_owner(&self, uid: &str) -> Option<&WorkloadOwner> {
        self.workload_owners.get(uid)
    }

    /// Replaces the size of another object's record by a new one, if there is room.
    fn charge_object(&mut self, old: usize, new: usize) -> bool {
        let after = self.object_bytes.saturating_sub(old) + new;
        let fits = after <= MAX_OBJECT_BYTES;
        if fits {
            self.object_bytes = after;
        }
        fits
    }

    /// Stores the record of another object, if there is room; else the old record stays.
    pub(super) fn set_object(&mut self, kind: ExtractFrom, name: String, other: ObjectRecord) -> bool {
        let key = (kind, name);
        let old = self.others.get(&key).map_or(0, |old| old.size(&key.1));
        let fits = self.charge_object(old, other.size(&key.1));
        if fits {
            self.others.insert(key, other);
        }
        fits
    }

    /// Stores the owner of a pod controller, if there is room; else the old record stays.
    pub(super) fn set_workload_owner(&mut self, uid: &str, maker: WorkloadOwner) -> bool {
        let old = self.workload_owners.get(uid).map_or(0, |old| old.size(uid));
        let fits = self.charge_object(old, maker.size(uid));
        if fits {
            self.workload_owners.insert(uid.to_owned(), maker);
        }
        fits
    }

    /// Removes an object that is not a pod, and its owner.
    pub(super) fn remove_object(&mut self, kind: WatchedKind, name: String, uid: &str) {
        let maker = self.workload_owners.remove(uid).map_or(0, |maker| maker.size(uid));
        let other = match kind {
            WatchedKind::Of(owner) => {
                let key = (owner, name);
                self.others.remove(&key).map_or(0, |other| other.size(&key.1))
            }
            _ => 0,
        };
        self.object_bytes -= (maker + other).min(self.object_bytes);
    }

    /// Keeps only matching records of a kind: by object name, or by the uid of a controller.
    pub(super) fn retain_objects(&mut self, kind: WatchedKind, stays: impl Fn(&str) -> bool) {
        let held = &mut self.object_bytes;
        let mut goes = |goes: bool, size: usize| {
            *held -= if goes { size.min(*held) } else { 0 };
            !goes
        };
        self.others.retain(|(of, name), other| goes(WatchedKind::Of(*of) == kind && !stays(name), other.size(name)));
        self.workload_owners.retain(|uid, maker| goes(maker.kind == kind && !stays(uid), maker.size(uid)));
    }

    pub(super) fn set_pod(&mut self, pod: PodRecord) -> bool {
        let uid = pod.uid.clone();
        self.leaving.retain(|(_, gone)| *gone != uid);
        let old = self.pods.remove(&uid);
        if let Some(old) = &old {
            self.unindex(old);
        }
        if self.pod_bytes + pod.size > MAX_POD_BYTES {
            return false;
        }
        self.pod_bytes += pod.size;
        let pod = Arc::new(pod);
        for identifier in &pod.identifiers {
            // An address may have moved from one pod to another, and their events arrive in any order.
            let newer = self.index.get(identifier).is_some_and(|other| other.started > pod.started);
            if !newer {
                self.index.insert(identifier.clone(), pod.clone());
            }
        }
        self.pods.insert(uid, pod);
        true
    }

    fn unindex(&mut self, pod: &Arc<PodRecord>) {
        self.pod_bytes -= pod.size.min(self.pod_bytes);
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
