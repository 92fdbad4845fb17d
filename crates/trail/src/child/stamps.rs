//! Which stamps the children carry that controllers of this process own.
//!
//! An apply must send the stamp that is there already: a new one would be a change in every run, and none would take it away. The stamps are known from
//! the watches of owned objects and from the answers to our own writes, so that no request is needed to learn them.
//! The table is bounded, and so is each entry, as whoever may write a child may write its annotations; what fell out of the table is asked for once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::carrier::Keys;

/// Children of all controllers of a process. An entry takes some 500 bytes, and whoever may annotate a child can make that 2 KiB.
const MAX_CHILDREN: usize = 100_000;

/// A kind of objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) plural: String,
}

impl Kind {
    pub(crate) fn of<K: Resource>(kind: &K::DynamicType) -> Self {
        Self { group: K::group(kind).into_owned(), plural: K::plural(kind).into_owned() }
    }
}

/// A child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Child {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// What is known about a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamped {
    pub(crate) uid: Option<String>,
    pub(crate) revision: u64,
    pub(crate) generation: Option<i64>,
    /// The annotations of the stamp, as they stand there.
    pub(crate) entries: Vec<(String, String)>,
    /// The hash of what this process asked for last.
    pub(crate) intent: Option<String>,
}

impl Stamped {
    pub(crate) fn of(meta: &ObjectMeta, keys: &Keys) -> Self {
        let mut entries = keys.entries(meta.annotations.as_ref());
        entries.retain(|(key, value)| value.len() <= keys.longest(key));
        Self {
            uid: meta.uid.clone(),
            revision: meta.resource_version.as_ref().and_then(|text| text.parse().ok()).unwrap_or_default(),
            generation: meta.generation,
            entries,
            intent: None,
        }
    }
}

/// Whether there is a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    There(Stamped),
    Absent,
    /// No watch shows it.
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct Stamps(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    children: HashMap<Child, Stamped>,
    /// Kinds of which every owned object is in the table, with the only namespace for which that holds.
    complete: HashSet<(Kind, Option<String>)>,
}

impl Stamps {
    pub(crate) fn get(&self, child: &Child) -> Known {
        let table = self.table();
        if let Some(stamped) = table.children.get(child) {
            return Known::There(stamped.clone());
        }
        let covers = |namespace: Option<String>| table.complete.contains(&(child.kind.clone(), namespace));
        if covers(None) || covers(child.namespace.clone()) { Known::Absent } else { Known::Unknown }
    }

    /// A watch or an answer showed a child. What is older than what is known says nothing.
    pub(crate) fn saw(&self, child: Child, mut seen: Stamped) {
        let mut table = self.table();
        if let Some(known) = table.children.get(&child)
            && known.uid == seen.uid
        {
            if known.revision > seen.revision {
                return;
            }
            seen.intent = seen.intent.or_else(|| known.intent.clone());
        } else if table.children.len() >= MAX_CHILDREN && !table.children.contains_key(&child) {
            // From here on, that one is not in the table does not mean that it is not there.
            table.complete.clear();
            if let Some(any) = table.children.keys().next().cloned() {
                table.children.remove(&any);
            }
        }
        table.children.insert(child, seen);
    }

    pub(crate) fn gone(&self, child: &Child, uid: Option<&String>) {
        let mut table = self.table();
        if table.children.get(child).is_some_and(|known| known.uid.as_ref() == uid) {
            table.children.remove(child);
        }
    }

    /// A watch without selectors has shown all that there is.
    pub(crate) fn is_complete(&self, kind: &Kind, namespace: Option<&str>) {
        let mut table = self.table();
        if table.children.len() < MAX_CHILDREN {
            table.complete.insert((kind.clone(), namespace.map(str::to_owned)));
        }
    }

    /// A watch starts over: whoever is not shown again is gone.
    pub(crate) fn retain(&self, kind: &Kind, namespace: Option<&str>, shown: &HashSet<Child>) {
        let mut table = self.table();
        table.children.retain(|child, _| {
            let elsewhere = namespace.is_some_and(|namespace| child.namespace.as_deref() != Some(namespace));
            child.kind != *kind || elsewhere || shown.contains(child)
        });
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> Kind {
        Kind { group: "apps".to_owned(), plural: "deployments".to_owned() }
    }

    fn child(namespace: &str) -> Child {
        Child { kind: kind(), namespace: Some(namespace.to_owned()), name: "a".to_owned() }
    }

    fn stamped(revision: u64, intent: Option<&str>) -> Stamped {
        Stamped { uid: Some("u".to_owned()), revision, intent: intent.map(str::to_owned), ..Stamped::default() }
    }

    #[test]
    fn garbage_of_any_length_takes_no_room() {
        let keys = Keys::default();
        let kept = |length: usize| {
            let annotations = keys.all().into_iter().map(|key| (key.to_owned(), "x".repeat(length))).collect();
            let meta = ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() };
            Stamped::of(&meta, &keys).entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(kept(64), keys.all());
        assert_eq!(kept(256), [&*keys.traceparent, &*keys.tracestate, &*keys.previous]);
        assert_eq!(kept(512), [&*keys.tracestate]);
        assert!(kept(513).is_empty());
    }

    #[test]
    fn absence_is_known_only_where_everything_is_shown() {
        let stamps = Stamps::default();
        assert_eq!(stamps.get(&child("x")), Known::Unknown);
        stamps.is_complete(&kind(), Some("x"));
        assert_eq!((stamps.get(&child("x")), stamps.get(&child("y"))), (Known::Absent, Known::Unknown));
        stamps.is_complete(&kind(), None);
        assert_eq!(stamps.get(&child("y")), Known::Absent);
    }

    #[test]
    fn the_newest_counts_and_the_intent_stays() {
        let stamps = Stamps::default();
        stamps.saw(child("x"), stamped(5, Some("hash")));
        stamps.saw(child("x"), stamped(4, None));
        assert_eq!(stamps.get(&child("x")), Known::There(stamped(5, Some("hash"))));
        stamps.saw(child("x"), stamped(6, None));
        assert_eq!(stamps.get(&child("x")), Known::There(stamped(6, Some("hash"))));
    }

    #[test]
    fn one_that_went_and_came_again_is_another() {
        let stamps = Stamps::default();
        stamps.is_complete(&kind(), None);
        stamps.saw(child("x"), stamped(5, None));
        stamps.gone(&child("x"), Some(&"other".to_owned()));
        assert_ne!(stamps.get(&child("x")), Known::Absent);
        stamps.gone(&child("x"), Some(&"u".to_owned()));
        assert_eq!(stamps.get(&child("x")), Known::Absent);
    }

    #[test]
    fn a_watch_that_starts_over_forgets_what_went() {
        let stamps = Stamps::default();
        stamps.saw(child("x"), stamped(5, None));
        stamps.saw(child("y"), stamped(5, None));
        stamps.retain(&kind(), Some("x"), &HashSet::new());
        assert_eq!(stamps.get(&child("x")), Known::Unknown);
        assert!(matches!(stamps.get(&child("y")), Known::There(_)));
    }
}
