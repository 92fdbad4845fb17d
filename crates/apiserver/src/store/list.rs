//! Lists: now, at an older revision, in pages.

use std::{cmp::Ordering, iter::Peekable, slice, sync::Arc};

use super::{
    Event, Stored,
    state::State,
    tree::{Place, Tree},
};
use crate::api::GroupResource;

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only this namespace.
    pub namespace: Option<Arc<str>>,
    /// The state to show.
    pub at: At,
    /// Only what comes after this key, `namespace/name` or, for cluster-scoped objects, `name`. It need not be there.
    pub after: Option<String>,
    /// As many at most; none and zero are no limit.
    pub limit: Option<usize>,
}

/// Which state of a collection to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// The newest.
    #[default]
    Now,
    /// The one at this revision.
    Exact(u64),
    /// The newest, which must not be older than this revision.
    NotOlderThan(u64),
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// In the order of etcd.
    pub items: Vec<Arc<Stored>>,
    /// The revision of the state that was listed. The next page asks for exactly this one.
    pub revision: u64,
    /// Where to go on, if this is not the end.
    pub more: Option<More>,
}

/// What is left of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct More {
    /// The `after` of the next page.
    pub after: String,
    /// How many objects come then, whether a selector wants them or not.
    pub remaining: usize,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The history does not reach back so far.
    #[error("revision {asked} is too old: the oldest that is known is {oldest}")]
    TooOld {
        /// The revision that was asked for.
        asked: u64,
        /// The oldest one that would do.
        oldest: u64,
    },
    /// The revision has not been reached.
    #[error("revision {asked} is in the future: the newest is {newest}")]
    Future {
        /// The revision that was asked for.
        asked: u64,
        /// The newest one.
        newest: u64,
    },
}

/// One state of a collection, which no later write changes.
pub(super) struct View {
    objects: Tree,
    /// The first event after the revision of each object that may be on the page, in the order of the objects: what it replaced is
    /// what is shown.
    undone: Vec<Arc<Event>>,
    revision: u64,
}

impl View {
    /// The state that a query asks for. It takes the tree's pointer and, for an older revision, the pointers of the events since.
    pub(super) fn take(state: &State, resource: &GroupResource, query: &ListQuery) -> Result<Self, ListError> {
        let revision = query.at.revision(state.revision)?;
        let collection = state.named(resource);
        let oldest = state.oldest(collection);
        if revision < oldest {
            return Err(ListError::TooOld { asked: revision, oldest });
        }
        let Some(collection) = collection else {
            return Ok(Self { objects: Tree::default(), undone: Vec::new(), revision });
        };
        let newer = collection.events.iter().rev().take_while(|event| event.revision > revision);
        let on_page = |place| query.is_inside(place) && !query.is_before(place);
        let newer = newer.filter(|event| on_page(event.object.place()));
        Ok(Self { objects: collection.objects.clone(), undone: newer.cloned().collect(), revision })
    }

    /// Orders what must be undone: to be called once, when the state is no longer locked.
    pub(super) fn settle(mut self) -> Self {
        // They came newest first.
        self.undone.reverse();
        self.undone.sort_by(|one, other| one.object.place().cmp(&other.object.place()));
        self.undone.dedup_by(|later, first| later.object.place() == first.object.place());
        self
    }

    /// The page that a query asks for, of the objects that `keep` wants.
    pub(super) fn page(&self, query: &ListQuery, keep: &dyn Fn(&Stored) -> bool) -> Listed {
        let limit = query.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let mut page = Listed { revision: self.revision, ..Listed::default() };
        let mut last = None;
        let inside = self.objects_from(query).take_while(|object| query.is_inside(object.place()));
        for object in inside {
            if page.items.len() == limit {
                let after = last.map_or_else(String::new, |last: &Arc<Stored>| last.place().to_string());
                page.more = Some(More { after, remaining: self.remaining(query, object.place()) });
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
        Merge { live: live.peekable(), undone: self.undone.iter().peekable() }
    }

    /// How many objects there are from a place on.
    fn remaining(&self, query: &ListQuery, from: Place<'_>) -> usize {
        let end = self.objects.seek(|place| query.is_inside(place) || query.is_before(place));
        let start = self.objects.seek(|place| place < from);
        let live = self.objects.rank(end).saturating_sub(self.objects.rank(start));
        let undone = self.undone.iter().filter(|event| event.object.place() >= from);
        let (gone, back) = undone.fold((0, 0), |(gone, back), event| {
            let live = self.objects.get(event.object.place()).is_some();
            (gone + usize::from(live), back + usize::from(event.previous.is_some()))
        });
        (live + back).saturating_sub(gone)
    }
}

impl At {
    fn revision(self, newest: u64) -> Result<u64, ListError> {
        match self {
            At::Exact(asked) | At::NotOlderThan(asked) if asked > newest => Err(ListError::Future { asked, newest }),
            At::Exact(asked) => Ok(asked),
            At::Now | At::NotOlderThan(_) => Ok(newest),
        }
    }
}

impl ListQuery {
    /// Whether a place comes before the page.
    fn is_before(&self, place: Place<'_>) -> bool {
        let namespace = self.namespace.as_deref().map(|namespace| Place { namespace, name: "" });
        namespace.is_some_and(|start| place < start)
            || self.after.as_deref().is_some_and(|after| place <= Place::parse(after))
    }

    /// Whether a place is in the namespace.
    fn is_inside(&self, place: Place<'_>) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| place.namespace == namespace)
    }
}

/// The live objects with what is undone in their place.
struct Merge<'a, L: Iterator<Item = &'a Arc<Stored>>> {
    live: Peekable<L>,
    undone: Peekable<slice::Iter<'a, Arc<Event>>>,
}

impl<'a, L: Iterator<Item = &'a Arc<Stored>>> Iterator for Merge<'a, L> {
    type Item = &'a Arc<Stored>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.live.peek(), self.undone.peek()) {
                (_, None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(live), Some(event)) => live.place().cmp(&event.object.place()),
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
