//! What is kept of the cluster, in bounded memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use kubewake_config::model::Owner;
use tokio::time::Instant;

use super::{
    cluster::Kind,
    rules::{self, Attributes, EACH, Known},
};

/// About a hundred thousand pods with a handful of labels each. A cluster of Kubernetes has at most 150 000. Tests have smaller ones.
pub(super) const MAX_OF_PODS: usize = if cfg!(test) { 1 << 20 } else { 128 << 20 };
/// About a hundred thousand ReplicaSets, old revisions among them, and a handful of labels of what makes pods. Apart from those, since whoever may
/// create an object chooses how large it is, and must not leave others' pods without room.
pub(super) const MAX_OF_OTHERS: usize = MAX_OF_PODS / 4;

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
    others: HashMap<(Owner, String), Other>,
    /// Who made what makes pods, by uid: the Deployment of a ReplicaSet, the CronJob of a Job.
    makers: HashMap<String, Maker>,
    /// Bytes of pods.
    of_pods: usize,
    /// Bytes of what is no pod.
    of_others: usize,
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

impl Maker {
    fn size(&self, uid: &str) -> usize {
        uid.len() + self.name.len() + self.uid.len() + EACH * 2
    }
}

impl Other {
    fn size(&self, name: &str) -> usize {
        name.len() + self.uid.len() + rules::measure(&self.attributes) + EACH * 2
    }
}

impl State {
    /// How many bytes are kept.
    pub(super) fn held(&self) -> usize {
        self.of_pods + self.of_others
    }

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

    /// Notes that something that is no pod takes so much instead of what it took, if there is room.
    fn make_room(&mut self, old: usize, new: usize) -> bool {
        let after = self.of_others.saturating_sub(old) + new;
        let fits = after <= MAX_OF_OTHERS;
        if fits {
            self.of_others = after;
        }
        fits
    }

    /// Remembers what is known of another object, if there is room; else what was known of it stays.
    pub(super) fn set_other(&mut self, kind: Owner, name: String, other: Other) -> bool {
        let key = (kind, name);
        let old = self.others.get(&key).map_or(0, |old| old.size(&key.1));
        let fits = self.make_room(old, other.size(&key.1));
        if fits {
            self.others.insert(key, other);
        }
        fits
    }

    /// Remembers who made something, if there is room; else what was known of it stays.
    pub(super) fn set_maker(&mut self, uid: &str, maker: Maker) -> bool {
        let old = self.makers.get(uid).map_or(0, |old| old.size(uid));
        let fits = self.make_room(old, maker.size(uid));
        if fits {
            self.makers.insert(uid.to_owned(), maker);
        }
        fits
    }

    /// Forgets an object that is no pod, and who made it.
    pub(super) fn remove(&mut self, kind: Kind, name: String, uid: &str) {
        let maker = self.makers.remove(uid).map_or(0, |maker| maker.size(uid));
        let other = match kind {
            Kind::Of(owner) => {
                let key = (owner, name);
                self.others.remove(&key).map_or(0, |other| other.size(&key.1))
            }
            _ => 0,
        };
        self.of_others -= (maker + other).min(self.of_others);
    }

    /// Keeps of a kind only what is so: by the name of an object, or by the uid of what somebody made.
    pub(super) fn retain(&mut self, kind: Kind, stays: impl Fn(&str) -> bool) {
        let held = &mut self.of_others;
        let mut goes = |goes: bool, size: usize| {
            *held -= if goes { size.min(*held) } else { 0 };
            !goes
        };
        self.others.retain(|(of, name), other| goes(Kind::Of(*of) == kind && !stays(name), other.size(name)));
        self.makers.retain(|uid, maker| goes(maker.of == kind && !stays(uid), maker.size(uid)));
    }

    pub(super) fn set_pod(&mut self, pod: Known) -> bool {
        let uid = pod.uid.clone();
        self.leaving.retain(|(_, gone)| *gone != uid);
        let old = self.pods.remove(&uid);
        if let Some(old) = &old {
            self.unindex(old);
        }
        if self.of_pods + pod.size > MAX_OF_PODS {
            return false;
        }
        self.of_pods += pod.size;
        let pod = Arc::new(pod);
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
        self.of_pods -= pod.size.min(self.of_pods);
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
