//! What a controller's watches see, noted on its way to the queue.

use std::{
    collections::HashSet,
    fmt::Debug,
    hash::Hash,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use futures_util::{Stream, TryStreamExt as _, stream};
use kube::{
    Api, Resource, ResourceExt as _,
    core::PartialObjectMeta,
    runtime::{
        controller::{ReconcileReason, ReconcileRequest},
        reflector::{Lookup, ObjectRef},
        watcher::{self, Event},
    },
};
use opentelemetry::trace::SpanContext;
use tokio::sync::{Notify, watch};

use super::cause::{Cause, Causes, Key, Reason};
use crate::{
    child::stamps::{Child, Kind, Stamped},
    trail::Trail,
};

/// What the watches of one controller have in common.
#[derive(Debug, Default)]
pub(super) struct Watching {
    trail: OnceLock<Trail>,
    pub(super) causes: Causes,
    /// Watches of related objects that have not delivered what was there at the start.
    behind: AtomicUsize,
    caught_up: Notify,
    /// Grows when an object of the controller's own kind is gone, or may be.
    pub(super) departures: watch::Sender<u64>,
    /// The controller ends, and waits for nothing more.
    ends: AtomicBool,
}

/// A watch of related objects.
#[derive(Debug)]
pub(super) struct Watched {
    kind: Kind,
    /// The only namespace that it shows; all, if none.
    namespace: Option<String>,
    /// It shows every object there.
    whole: bool,
}

impl Watched {
    pub(super) fn new<C: Resource>(api: &Api<C>, config: &watcher::Config, kind: &C::DynamicType) -> Self {
        Self {
            kind: Kind::of::<C>(kind),
            namespace: api.namespace().map(str::to_owned),
            whole: config.label_selector.is_none() && config.field_selector.is_none(),
        }
    }
}

impl Watching {
    /// From now on everything is noted for this trail.
    pub(super) fn begin(&self, trail: &Trail) {
        // A controller runs once: `run` takes it.
        let _ = self.trail.set(trail.clone());
    }

    pub(super) fn note(&self, key: Key, reason: Reason, related: Option<String>, context: Option<SpanContext>) {
        if !self.trail.get().is_some_and(Trail::is_on) && !self.causes.is_observed() {
            return;
        }
        let contexts = context.into_iter().collect();
        let listed = reason == Reason::InitialList;
        self.causes.note(key, Cause { reason, listed, arrived: Some(Instant::now()), related, contexts });
    }

    /// What led to the run that begins now. Without a note the run before asked for it.
    pub(super) fn take(&self, key: &Key) -> Cause {
        self.causes.take(key).unwrap_or(Cause { reason: Reason::Requeue, ..Cause::default() })
    }

    pub(super) fn forget<K: Lookup>(&self, object: &ObjectRef<K>) {
        self.causes.forget(&Key { namespace: object.namespace.clone(), name: object.name.clone() });
    }

    /// Waits until every watch has delivered what was there at the start, or has failed.
    pub(super) async fn synced(&self) {
        loop {
            let mut caught_up = std::pin::pin!(self.caught_up.notified());
            // From here on, whoever catches up is heard.
            caught_up.as_mut().enable();
            if self.behind.load(Ordering::Acquire) == 0 || self.ends.load(Ordering::Acquire) {
                return;
            }
            caught_up.await;
        }
    }

    /// The controller is asked to end: its watches are not looked at any more, so that none will catch up.
    pub(super) fn end(&self) {
        self.ends.store(true, Ordering::Release);
        self.caught_up.notify_waiters();
    }

    fn departed(&self) {
        self.departures.send_modify(|departures| *departures = departures.wrapping_add(1));
    }

    fn saw_revision<O: Resource>(&self, kind: &Kind, object: &O) {
        if let Some(shared) = self.trail.get().and_then(Trail::shared) {
            shared.known.watched(&kind.group, &kind.plural, object.meta());
        }
    }

    fn saw_child<O: Resource>(&self, watched: &Watched, event: &Event<O>, shown: &mut HashSet<Child>) {
        let Some(shared) = self.trail.get().and_then(Trail::shared) else { return };
        let child = |object: &O| Child {
            kind: watched.kind.clone(),
            namespace: object.meta().namespace.clone(),
            name: object.name_any(),
        };
        let stamped = |object: &O| Stamped::of(object.meta(), &shared.options.keys);
        match event {
            Event::Delete(object) => shared.stamps.gone(&child(object), object.meta().uid.as_ref()),
            Event::Apply(object) => shared.stamps.saw(child(object), stamped(object)),
            Event::InitApply(object) => {
                shown.insert(child(object));
                shared.stamps.saw(child(object), stamped(object));
            }
            Event::Init | Event::InitDone => {}
        }
    }

    /// A watch has shown all that is there.
    fn shown_all(&self, watched: &Watched, shown: Option<&mut HashSet<Child>>) {
        let (Some(shared), Some(shown)) = (self.trail.get().and_then(Trail::shared), shown) else { return };
        let namespace = watched.namespace.as_deref();
        if watched.whole {
            shared.stamps.retain(&watched.kind, namespace, shown);
            shared.stamps.is_complete(&watched.kind, namespace);
        }
        *shown = HashSet::new();
    }

    fn context_of<O: Resource>(&self, object: &O) -> Option<SpanContext> {
        self.trail.get()?.context_of(object).map(|found| found.context)
    }
}

/// One watch that is behind. It has caught up when this is dropped, at the latest.
struct Behind(Arc<Watching>);

impl Behind {
    fn new(watching: &Arc<Watching>) -> Self {
        watching.behind.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(watching))
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        if self.0.behind.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.caught_up.notify_waiters();
        }
    }
}

/// Notices when a watch has caught up.
struct Progress(Option<Behind>);

impl Progress {
    fn see<O>(&mut self, event: &Result<Event<O>, watcher::Error>) {
        // A watch that is refused would keep everything waiting for ever.
        if matches!(event, Ok(Event::InitDone) | Err(_)) {
            self.0 = None;
        }
    }
}

pub(super) fn key_of<K: Resource>(object: &K) -> Key {
    Key { namespace: object.meta().namespace.clone(), name: object.name_any() }
}

/// Requests for the objects of the controller's own kind.
pub(super) fn main<K>(
    watching: Arc<Watching>,
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    kind: K::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<K>, watcher::Error>>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Clone + Eq + Hash,
{
    let names = Kind::of::<K>(&kind);
    events.try_filter_map(move |event| {
        let (object, reason) = match event {
            Event::Apply(object) => (Some(object), Reason::ObjectUpdated),
            Event::InitApply(object) => (Some(object), Reason::InitialList),
            Event::Delete(object) => {
                gone(&watching, &object);
                (None, Reason::Unknown)
            }
            Event::Init => (None, Reason::Unknown),
            // What is not listed any more went while nobody watched.
            Event::InitDone => {
                watching.departed();
                (None, Reason::Unknown)
            }
        };
        let request = object.map(|object| {
            watching.saw_revision(&names, &object);
            watching.note(key_of(&object), reason, None, None);
            let obj_ref = ObjectRef::from_obj_with(&object, kind.clone());
            ReconcileRequest { obj_ref, reason: ReconcileReason::ObjectUpdated }
        });
        std::future::ready(Ok(request))
    })
}

fn gone<K: Resource>(watching: &Watching, object: &K) {
    watching.departed();
    watching.causes.forget(&key_of(object));
    if let (Some(shared), Some(uid)) = (watching.trail.get().and_then(Trail::shared), &object.meta().uid) {
        shared.objects.forget(uid);
    }
}

/// Requests for the owners of other objects.
pub(super) fn owned<K, C>(
    watching: Arc<Watching>,
    events: impl Stream<Item = Result<Event<PartialObjectMeta<C>>, watcher::Error>>,
    watched: Watched,
    kind: C::DynamicType,
    owner: K::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<K>, watcher::Error>>
where
    K: Resource + 'static,
    K::DynamicType: Clone + Eq + Hash,
    C: Resource + 'static,
    C::DynamicType: Clone + Debug + Eq + Hash,
{
    let mapper = move |object: &PartialObjectMeta<C>| {
        let namespace = object.meta().namespace.as_deref();
        let owners = object.meta().owner_references.iter().flatten();
        owners.filter_map(|it| ObjectRef::from_owner_ref(namespace, it, owner.clone())).collect::<Vec<_>>()
    };
    related(watching, events, watched, kind, true, mapper)
}

/// Requests for whatever a function says.
pub(super) fn others<K, O, I>(
    watching: Arc<Watching>,
    events: impl Stream<Item = Result<Event<O>, watcher::Error>>,
    watched: Watched,
    kind: O::DynamicType,
    mapper: impl Fn(O) -> I,
) -> impl Stream<Item = Result<ReconcileRequest<K>, watcher::Error>>
where
    K: Resource + 'static,
    K::DynamicType: Clone + Eq + Hash,
    O: Resource + Clone + 'static,
    O::DynamicType: Clone + Debug + Eq + Hash,
    I: IntoIterator<Item = ObjectRef<K>>,
{
    related(watching, events, watched, kind, false, move |object: &O| mapper(object.clone()).into_iter().collect())
}

fn related<K, O>(
    watching: Arc<Watching>,
    events: impl Stream<Item = Result<Event<O>, watcher::Error>>,
    watched: Watched,
    kind: O::DynamicType,
    children: bool,
    mapper: impl Fn(&O) -> Vec<ObjectRef<K>>,
) -> impl Stream<Item = Result<ReconcileRequest<K>, watcher::Error>>
where
    K: Resource + 'static,
    K::DynamicType: Clone + Eq + Hash,
    O: Resource + 'static,
    O::DynamicType: Clone + Debug + Eq + Hash,
{
    let mut progress = Progress(Some(Behind::new(&watching)));
    let mut first = children.then(HashSet::new);
    let seen = futures_util::StreamExt::map(events, move |event| {
        let requests = event.as_ref().map(|event| see(&watching, &watched, &kind, &mut first, event, &mapper));
        let requests = requests.unwrap_or_default();
        progress.see(&event);
        event.map(|_| stream::iter(requests.into_iter().map(Ok)))
    });
    seen.try_flatten()
}

/// Notes what an event means, and gives the requests that it leads to.
fn see<K, O>(
    watching: &Watching,
    watched: &Watched,
    kind: &O::DynamicType,
    shown: &mut Option<HashSet<Child>>,
    event: &Event<O>,
    mapper: impl Fn(&O) -> Vec<ObjectRef<K>>,
) -> Vec<ReconcileRequest<K>>
where
    K: Resource + 'static,
    K::DynamicType: Clone + Eq + Hash,
    O: Resource + 'static,
    O::DynamicType: Clone + Debug + Eq + Hash,
{
    let (object, reason) = match event {
        Event::Apply(object) | Event::Delete(object) => (object, Reason::RelatedObjectUpdated),
        Event::InitApply(object) => (object, Reason::InitialList),
        Event::Init => {
            shown.iter_mut().for_each(HashSet::clear);
            return Vec::new();
        }
        Event::InitDone => {
            watching.shown_all(watched, shown.as_mut());
            return Vec::new();
        }
    };
    watching.saw_revision(&watched.kind, object);
    let objects = mapper(object);
    if !objects.is_empty()
        && let Some(shown) = shown
    {
        watching.saw_child(watched, event, shown);
    }
    let related = ObjectRef::from_obj_with(object, kind.clone()).erase();
    let context = watching.context_of(object);
    let request = |obj_ref: ObjectRef<K>| {
        let key = Key { namespace: obj_ref.namespace.clone(), name: obj_ref.name.clone() };
        watching.note(key, reason, Some(related.to_string()), context.clone());
        let reason = ReconcileReason::RelatedObjectUpdated { obj_ref: Box::new(related.clone()) };
        ReconcileRequest { obj_ref, reason }
    };
    objects.into_iter().map(request).collect()
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::ObjectMeta;

    use super::*;

    #[tokio::test]
    async fn it_is_told_when_an_object_is_gone_or_may_be() {
        let watching = Arc::new(Watching::default());
        let departures = |event: Event<ConfigMap>| {
            let watching = Arc::clone(&watching);
            async move {
                let before = *watching.departures.borrow();
                let events = main(Arc::clone(&watching), stream::iter([Ok(event)]), ());
                events.for_each(|_| std::future::ready(())).await;
                *watching.departures.borrow() - before
            }
        };
        let object = || ConfigMap {
            metadata: ObjectMeta { name: Some("one".to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        };
        assert_eq!(departures(Event::Apply(object())).await, 0);
        assert_eq!(departures(Event::Delete(object())).await, 1);
        assert_eq!(departures(Event::Init).await + departures(Event::InitApply(object())).await, 0);
        assert_eq!(departures(Event::InitDone).await, 1, "what is not listed any more is gone");
    }
}
