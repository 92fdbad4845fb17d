//! Lists: the newest state or that of an older revision, in pages.

use std::{cmp::Ordering, iter::Peekable, slice, sync::Arc};

use super::{
    StoreEvent, Stored,
    state::StoreState,
    tree::{NamespacedName, ObjectTree},
};
use crate::api::GroupResource;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    pub namespace: Option<Arc<str>>,
    pub at: ListRevision,
    /// Only objects after this key, `namespace/name` or, for cluster-scoped objects, `name`. The key need not
    /// exist.
    pub after: Option<String>,
    /// The page size; none and zero are no limit.
    pub limit: Option<usize>,
}

/// The state of a collection to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListRevision {
    #[default]
    Newest,
    Exact(u64),
    /// The newest, which must not be older than this revision.
    NotOlderThan(u64),
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListResult {
    /// The objects in etcd's order.
    pub items: Vec<Arc<Stored>>,
    /// The revision of the listed state. The next page asks for exactly this one.
    pub revision: u64,
    /// The next page, if there is one.
    pub more: Option<NextPage>,
}

/// The rest of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextPage {
    /// The `after` of the next page.
    pub after: String,
    /// The number of remaining objects, whether a selector matches them or not.
    pub remaining: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The history does not reach back so far.
    #[error("revision {asked} is too old: the oldest that is known is {oldest}")]
    TooOld {
        asked: u64,
        /// The oldest revision in the history.
        oldest: u64,
    },
    /// The revision has not been reached.
    #[error("revision {asked} is in the future: the newest is {newest}")]
    Future {
        asked: u64,
        /// The newest revision of the store.
        newest: u64,
    },
}

/// One state of a collection, which no later write changes.
pub(super) struct CollectionView {
    objects: ObjectTree,
    /// For each object that may be on the page, the first event after the revision, in the order of the
    /// objects: the list shows the object that the event replaced.
    undone: Vec<Arc<StoreEvent>>,
    revision: u64,
}

impl CollectionView {
    /// Captures the state that a query asks for: the tree's pointer and, for an older revision, pointers to the
    /// events since.
    pub(super) fn capture(state: &StoreState, resource: &GroupResource, query: &ListQuery) -> Result<Self, ListError> {
        let revision = query.at.resolve(state.revision)?;
        let collection = state.collection(resource);
        let oldest = state.oldest_revision(collection);
        if revision < oldest {
            return Err(ListError::TooOld { asked: revision, oldest });
        }
        let Some(collection) = collection else {
            return Ok(Self { objects: ObjectTree::default(), undone: Vec::new(), revision });
        };
        let newer = collection.events.iter().rev().take_while(|event| event.revision > revision);
        let on_page = |place| query.is_inside(place) && !query.is_before(place);
        let newer = newer.filter(|event| on_page(event.object.namespaced_name()));
        Ok(Self { objects: collection.objects.clone(), undone: newer.cloned().collect(), revision })
    }

    /// Sorts the events to undo: to be called once, after the lock was released.
    pub(super) fn sort_undone(mut self) -> Self {
        // Events were collected newest first.
        self.undone.reverse();
        self.undone.sort_by(|one, other| one.object.namespaced_name().cmp(&other.object.namespaced_name()));
        self.undone.dedup_by(|later, first| later.object.namespaced_name() == first.object.namespaced_name());
        self
    }

    /// The page of a query, of the objects that `keep` accepts.
    pub(super) fn page(&self, query: &ListQuery, keep: &dyn Fn(&Stored) -> bool) -> ListResult {
        let limit = query.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let mut page = ListResult { revision: self.revision, ..ListResult::default() };
        let mut last = None;
        let inside = self.objects_from(query).take_while(|object| query.is_inside(object.namespaced_name()));
        for object in inside {
            if page.items.len() == limit {
                let after = last.map_or_else(String::new, |last: &Arc<Stored>| last.namespaced_name().to_string());
                page.more = Some(NextPage { after, remaining: self.remaining(query, object.namespaced_name()) });
                break;
            }
            last = Some(object);
            if keep(object) {
                page.items.push(Arc::clone(object));
            }
        }
        page
    }

    fn objects_from(&self, query: &ListQuery) -> impl Iterator<Item = &Arc<Stored>> {
        let live = self.objects.iter_from(self.objects.seek(|place| query.is_before(place)));
        RewoundObjects { live: live.peekable(), undone: self.undone.iter().peekable() }
    }

    /// The number of objects from a position on.
    fn remaining(&self, query: &ListQuery, from: NamespacedName<'_>) -> usize {
        let end = self.objects.seek(|place| query.is_inside(place) || query.is_before(place));
        let start = self.objects.seek(|place| place < from);
        let live = self.objects.rank(end).saturating_sub(self.objects.rank(start));
        let undone = self.undone.iter().filter(|event| event.object.namespaced_name() >= from);
        let (gone, back) = undone.fold((0, 0), |(gone, back), event| {
            let live = self.objects.get(event.object.namespaced_name()).is_some();
            (gone + usize::from(live), back + usize::from(event.previous.is_some()))
        });
        (live + back).saturating_sub(gone)
    }
}

impl ListRevision {
    fn resolve(self, newest: u64) -> Result<u64, ListError> {
        match self {
            ListRevision::Exact(asked) | ListRevision::NotOlderThan(asked) if asked > newest => {
                Err(ListError::Future { asked, newest })
            }
            ListRevision::Exact(asked) => Ok(asked),
            ListRevision::Newest | ListRevision::NotOlderThan(_) => Ok(newest),
        }
    }
}

impl ListQuery {
    /// Whether a name comes before the page.
    fn is_before(&self, place: NamespacedName<'_>) -> bool {
        let namespace = self.namespace.as_deref().map(|namespace| NamespacedName { namespace, name: "" });
        namespace.is_some_and(|start| place < start)
            || self.after.as_deref().is_some_and(|after| place <= NamespacedName::parse(after))
    }

    /// Whether a name is in the query's namespace.
    fn is_inside(&self, place: NamespacedName<'_>) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| place.namespace == namespace)
    }
}

/// The live objects, with undone ones replaced.
struct RewoundObjects<'a, L: Iterator<Item = &'a Arc<Stored>>> {
    live: Peekable<L>,
    undone: Peekable<slice::Iter<'a, Arc<StoreEvent>>>,
}

impl<'a, L: Iterator<Item = &'a Arc<Stored>>> Iterator for RewoundObjects<'a, L> {
    type Item = &'a Arc<Stored>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.live.peek(), self.undone.peek()) {
                (_, None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(live), Some(event)) => live.namespaced_name().cmp(&event.object.namespaced_name()),
            };
            if order.is_lt() {
                return self.live.next();
            }
            if order.is_eq() {
                self.live.next();
            }
            if let Some(previous) = self.undone.next().and_then(|event| event.previous.as_ref()) {
                return Some(previous);
            }
        }
    }
}
