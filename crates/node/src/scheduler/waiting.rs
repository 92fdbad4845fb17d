//! Pods that fit nowhere, and when they last said so.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::Instant;

use super::{ledger::News, neighbours::is_sociable};
use crate::key::Key;

/// All of them.
#[derive(Debug, Default)]
pub struct Waiting(HashMap<Key, One>);

#[derive(Debug)]
struct One {
    /// The most important first, then the oldest.
    order: (Reverse<i32>, Option<jiff::Timestamp>),
    /// It may fit because of a new pod, and not only because of more room.
    sociable: bool,
    why: String,
    told: Instant,
}

impl Waiting {
    /// This one fits nowhere. Answers whether to tell so: the reason is new, or was told so long ago.
    pub fn add(&mut self, key: Key, pod: &Pod, why: &str, now: Instant, again: Duration) -> bool {
        if self.0.get(&key).is_some_and(|one| one.why == why && now.duration_since(one.told) < again) {
            return false;
        }
        let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
        let order = (Reverse(priority), pod.creation_timestamp().map(|time| time.0));
        let sociable = pod.spec.as_ref().is_some_and(is_sociable);
        self.0.insert(key, One { order, sociable, why: why.to_owned(), told: now });
        true
    }

    /// This one waits no more.
    pub fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Those that a change may help, in the order in which they get what room there is.
    pub fn helped(&self, by: News) -> Vec<Key> {
        let helped = self.0.iter().filter(|(_, one)| by == News::Room || one.sociable);
        let mut all: Vec<_> = helped.map(|(key, one)| (&one.order, key)).collect();
        all.sort();
        all.into_iter().map(|(_, key)| key.clone()).collect()
    }
}
