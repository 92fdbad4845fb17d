//! The stamps on children that the controllers of this process own.
//!
//! An apply has to send the stamp that is on the child already: a new stamp would be a change in every run, and
//! an omitted one would be removed. The stamps are known from the watches of owned objects and from the
//! responses to our own writes, so that no request is needed. The table and its entries are bounded, because
//! every writer of a child may write its annotations. A child evicted from the table is requested once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::carrier::AnnotationKeys;

/// Children of all controllers of a process. An entry takes about 500 bytes; annotations written by others can
/// make that 2 KiB.
const MAX_CHILDREN: usize = 100_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResourceKind {
    pub(crate) group: String,
    pub(crate) plural: String,
}

impl ResourceKind {
    pub(crate) fn from_dynamic_type<K: Resource>(kind: &K::DynamicType) -> Self {
        Self { group: K::group(kind).into_owned(), plural: K::plural(kind).into_owned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChildRef {
    pub(crate) kind: ResourceKind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// The recorded stamp of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StampRecord {
    pub(crate) uid: Option<String>,
    pub(crate) revision: u64,
    pub(crate) generation: Option<i64>,
    /// The annotations of the stamp, unchanged.
    pub(crate) entries: Vec<(String, String)>,
    /// The hash of the desired state that this process wrote last.
    pub(crate) intent: Option<String>,
}

impl StampRecord {
    pub(crate) fn from_meta(meta: &ObjectMeta, keys: &AnnotationKeys) -> Self {
        let mut entries = keys.entries(meta.annotations.as_ref());
        entries.retain(|(key, value)| value.len() <= keys.max_value_length(key));
        Self {
            uid: meta.uid.clone(),
            revision: meta.resource_version.as_ref().and_then(|text| text.parse().ok()).unwrap_or_default(),
            generation: meta.generation,
            entries,
            intent: None,
        }
    }
}

/// The result of looking up a child in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StampLookup {
    Present(StampRecord),
    Absent,
    /// No watch shows the child.
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct StampCache(Mutex<StampCacheState>);

#[derive(Debug, Default)]
struct StampCacheState {
    children: HashMap<ChildRef, StampRecord>,
    /// Kinds whose owned objects are all in the table, with the namespace for which that holds (none: all).
    complete: HashSet<(ResourceKind, Option<String>)>,
}

impl StampCache {
    pub(crate) fn get(&self, child: &ChildRef) -> StampLookup {
        let table = self.table();
        if let Some(stamped) = table.children.get(child) {
            return StampLookup::Present(stamped.clone());
        }
        let covers = |namespace: Option<String>| table.complete.contains(&(child.kind.clone(), namespace));
        if covers(None) || covers(child.namespace.clone()) { StampLookup::Absent } else { StampLookup::Unknown }
    }

    /// Records a child from a watch or a response. A state older than the recorded one is ignored.
    pub(crate) fn record(&self, child: ChildRef, mut seen: StampRecord) {
        let mut table = self.table();
        if let Some(known) = table.children.get(&child)
            && known.uid == seen.uid
        {
            if known.revision > seen.revision {
                return;
            }
            seen.intent = seen.intent.or_else(|| known.intent.clone());
        } else if table.children.len() >= MAX_CHILDREN && !table.children.contains_key(&child) {
            // An entry is evicted: from here on, absence from the table does not mean that a child does not
            // exist.
            table.complete.clear();
            if let Some(any) = table.children.keys().next().cloned() {
                table.children.remove(&any);
            }
        }
        table.children.insert(child, seen);
    }

    pub(crate) fn gone(&self, child: &ChildRef, uid: Option<&String>) {
        let mut table = self.table();
        if table.children.get(child).is_some_and(|known| known.uid.as_ref() == uid) {
            table.children.remove(child);
        }
    }

    /// Marks a kind as complete after a watch without selectors has listed all objects.
    pub(crate) fn mark_complete(&self, kind: &ResourceKind, namespace: Option<&str>) {
        let mut table = self.table();
        if table.children.len() < MAX_CHILDREN {
            table.complete.insert((kind.clone(), namespace.map(str::to_owned)));
        }
    }

    /// Removes the children that a relist did not show.
    pub(crate) fn retain(&self, kind: &ResourceKind, namespace: Option<&str>, shown: &HashSet<ChildRef>) {
        let mut table = self.table();
        table.children.retain(|child, _| {
            let elsewhere = namespace.is_some_and(|namespace| child.namespace.as_deref() != Some(namespace));
            child.kind != *kind || elsewhere || shown.contains(child)
        });
    }

    fn table(&self) -> MutexGuard<'_, StampCacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> ResourceKind {
        ResourceKind { group: "apps".to_owned(), plural: "deployments".to_owned() }
    }

    fn child(namespace: &str) -> ChildRef {
        ChildRef { kind: kind(), namespace: Some(namespace.to_owned()), name: "a".to_owned() }
    }

    fn stamped(revision: u64, intent: Option<&str>) -> StampRecord {
        StampRecord { uid: Some("u".to_owned()), revision, intent: intent.map(str::to_owned), ..StampRecord::default() }
    }

    #[test]
    fn garbage_of_any_length_takes_no_room() {
        let keys = AnnotationKeys::default();
        let kept = |length: usize| {
            let annotations = keys.all().into_iter().map(|key| (key.to_owned(), "x".repeat(length))).collect();
            let meta = ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() };
            StampRecord::from_meta(&meta, &keys).entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(kept(64), keys.all());
        assert_eq!(kept(256), [&*keys.traceparent, &*keys.tracestate, &*keys.previous]);
        assert_eq!(kept(512), [&*keys.tracestate]);
        assert!(kept(513).is_empty());
    }

    #[test]
    fn absence_is_known_only_where_everything_is_shown() {
        let stamps = StampCache::default();
        assert_eq!(stamps.get(&child("x")), StampLookup::Unknown);
        stamps.mark_complete(&kind(), Some("x"));
        assert_eq!((stamps.get(&child("x")), stamps.get(&child("y"))), (StampLookup::Absent, StampLookup::Unknown));
        stamps.mark_complete(&kind(), None);
        assert_eq!(stamps.get(&child("y")), StampLookup::Absent);
    }

    #[test]
    fn the_newest_counts_and_the_intent_stays() {
        let stamps = StampCache::default();
        stamps.record(child("x"), stamped(5, Some("hash")));
        stamps.record(child("x"), stamped(4, None));
        assert_eq!(stamps.get(&child("x")), StampLookup::Present(stamped(5, Some("hash"))));
        stamps.record(child("x"), stamped(6, None));
        assert_eq!(stamps.get(&child("x")), StampLookup::Present(stamped(6, Some("hash"))));
    }

    #[test]
    fn one_that_went_and_came_again_is_another() {
        let stamps = StampCache::default();
        stamps.mark_complete(&kind(), None);
        stamps.record(child("x"), stamped(5, None));
        stamps.gone(&child("x"), Some(&"other".to_owned()));
        assert_ne!(stamps.get(&child("x")), StampLookup::Absent);
        stamps.gone(&child("x"), Some(&"u".to_owned()));
        assert_eq!(stamps.get(&child("x")), StampLookup::Absent);
    }

    #[test]
    fn a_watch_that_starts_over_forgets_what_went() {
        let stamps = StampCache::default();
        stamps.record(child("x"), stamped(5, None));
        stamps.record(child("y"), stamped(5, None));
        stamps.retain(&kind(), Some("x"), &HashSet::new());
        assert_eq!(stamps.get(&child("x")), StampLookup::Unknown);
        assert!(matches!(stamps.get(&child("y")), StampLookup::Present(_)));
    }
}
