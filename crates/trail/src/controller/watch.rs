//! Records the events of a controller's watches on their way to the queue.

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

use super::run_cause::{PendingCauses, ReconcileKey, RunCause, RunReason};
use crate::{
    child::stamps::{ChildRef, ResourceKind, StampRecord},
    trail::Trail,
};

/// The shared state of the watches of one controller.
#[derive(Debug, Default)]
pub(super) struct ControllerWatches {
    trail: OnceLock<Trail>,
    pub(super) causes: PendingCauses,
    /// The number of watches of related objects that have not delivered their initial list.
    unsynced: AtomicUsize,
    synced: Notify,
    /// Grows when an object of the controller's own kind was deleted or may have been.
    pub(super) deletions: watch::Sender<u64>,
    /// Whether the controller is shutting down and waits for no watch.
    is_shutting_down: AtomicBool,
}

/// A watch of related objects.
#[derive(Debug)]
pub(super) struct RelatedWatch {
    kind: ResourceKind,
    /// The only namespace that the watch covers; none for all namespaces.
    namespace: Option<String>,
    /// Whether the watch has no selectors.
    is_unfiltered: bool,
}

impl RelatedWatch {
    pub(super) fn new<C: Resource>(api: &Api<C>, config: &watcher::Config, kind: &C::DynamicType) -> Self {
        Self {
            kind: ResourceKind::from_dynamic_type::<C>(kind),
            namespace: api.namespace().map(str::to_owned),
            is_unfiltered: config.label_selector.is_none() && config.field_selector.is_none(),
        }
    }
}

impl ControllerWatches {
    /// Sets the trail for which events are recorded.
    pub(super) fn attach_trail(&self, trail: &Trail) {
        // The cell is empty: `run` consumes the controller, so this is called once.
        let _ = self.trail.set(trail.clone());
    }

    pub(super) fn record_cause(
        &self,
        key: ReconcileKey,
        reason: RunReason,
        related: Option<String>,
        context: Option<SpanContext>,
    ) {
        if !self.trail.get().is_some_and(Trail::is_enabled) && !self.causes.is_observed() {
            return;
        }
        let contexts = context.into_iter().collect();
        let listed = reason == RunReason::InitialList;
        self.causes
            .record(key, RunCause { reason, was_listed: listed, arrived_at: Some(Instant::now()), related, contexts });
    }

    /// The cause of the run that begins. If none was recorded, the previous run asked for a requeue.
    pub(super) fn take_cause(&self, key: &ReconcileKey) -> RunCause {
        self.causes.take(key).unwrap_or(RunCause { reason: RunReason::Requeue, ..RunCause::default() })
    }

    pub(super) fn forget<K: Lookup>(&self, object: &ObjectRef<K>) {
        self.causes.forget(&ReconcileKey { namespace: object.namespace.clone(), name: object.name.clone() });
    }

    /// Waits until every watch has delivered its initial list or has failed.
    pub(super) async fn wait_synced(&self) {
        loop {
            let mut caught_up = std::pin::pin!(self.synced.notified());
            // From here on no notification is missed.
            caught_up.as_mut().enable();
            if self.unsynced.load(Ordering::Acquire) == 0 || self.is_shutting_down.load(Ordering::Acquire) {
                return;
            }
            caught_up.await;
        }
    }

    /// Ends the waiting: watches are no longer polled, so none of them will become synced.
    pub(super) fn begin_shutdown(&self) {
        self.is_shutting_down.store(true, Ordering::Release);
        self.synced.notify_waiters();
    }

    fn record_deletion(&self) {
        self.deletions.send_modify(|departures| *departures = departures.wrapping_add(1));
    }

    fn record_revision<O: Resource>(&self, kind: &ResourceKind, object: &O) {
        if let Some(shared) = self.trail.get().and_then(Trail::shared) {
            shared.write_history.record_watched(&kind.group, &kind.plural, object.meta());
        }
    }

    fn record_child<O: Resource>(&self, watched: &RelatedWatch, event: &Event<O>, shown: &mut HashSet<ChildRef>) {
        let Some(shared) = self.trail.get().and_then(Trail::shared) else { return };
        let child = |object: &O| ChildRef {
            kind: watched.kind.clone(),
            namespace: object.meta().namespace.clone(),
            name: object.name_any(),
        };
        let stamped = |object: &O| StampRecord::from_meta(object.meta(), &shared.options.keys);
        match event {
            Event::Delete(object) => shared.stamp_cache.gone(&child(object), object.meta().uid.as_ref()),
            Event::Apply(object) => shared.stamp_cache.record(child(object), stamped(object)),
            Event::InitApply(object) => {
                shown.insert(child(object));
                shared.stamp_cache.record(child(object), stamped(object));
            }
            Event::Init | Event::InitDone => {}
        }
    }

    /// Handles the end of a list.
    fn complete_list(&self, watched: &RelatedWatch, shown: Option<&mut HashSet<ChildRef>>) {
        let (Some(shared), Some(shown)) = (self.trail.get().and_then(Trail::shared), shown) else { return };
        let namespace = watched.namespace.as_deref();
        if watched.is_unfiltered {
            shared.stamp_cache.retain(&watched.kind, namespace, shown);
            shared.stamp_cache.mark_complete(&watched.kind, namespace);
        }
        *shown = HashSet::new();
    }

    fn context_of<O: Resource>(&self, object: &O) -> Option<SpanContext> {
        self.trail.get()?.object_context(object).map(|found| found.context)
    }
}

/// A watch without its initial list. It counts as synced once this is dropped.
struct UnsyncedWatch(Arc<ControllerWatches>);

impl UnsyncedWatch {
    fn new(watching: &Arc<ControllerWatches>) -> Self {
        watching.unsynced.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(watching))
    }
}

impl Drop for UnsyncedWatch {
    fn drop(&mut self) {
        if self.0.unsynced.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.synced.notify_waiters();
        }
    }
}

/// Detects when a watch is synced.
struct SyncTracker(Option<UnsyncedWatch>);

impl SyncTracker {
    fn observe_event<O>(&mut self, event: &Result<Event<O>, watcher::Error>) {
        // An error counts, too: a watch that is refused would block every run for ever.
        if matches!(event, Ok(Event::InitDone) | Err(_)) {
            self.0 = None;
        }
    }
}

pub(super) fn reconcile_key<K: Resource>(object: &K) -> ReconcileKey {
    ReconcileKey { namespace: object.meta().namespace.clone(), name: object.name_any() }
}

/// Requests for the objects of the controller's own kind.
pub(super) fn primary_requests<K>(
    watching: Arc<ControllerWatches>,
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    kind: K::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<K>, watcher::Error>>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Clone + Eq + Hash,
{
    let names = ResourceKind::from_dynamic_type::<K>(&kind);
    events.try_filter_map(move |event| {
        let (object, reason) = match event {
            Event::Apply(object) => (Some(object), RunReason::ObjectUpdated),
            Event::InitApply(object) => (Some(object), RunReason::InitialList),
            Event::Delete(object) => {
                handle_deletion(&watching, &object);
                (None, RunReason::Unknown)
            }
            Event::Init => (None, RunReason::Unknown),
            // Objects that are no longer listed were deleted while the watch was interrupted.
            Event::InitDone => {
                watching.record_deletion();
                (None, RunReason::Unknown)
            }
        };
        let request = object.map(|object| {
            watching.record_revision(&names, &object);
            watching.record_cause(reconcile_key(&object), reason, None, None);
            let obj_ref = ObjectRef::from_obj_with(&object, kind.clone());
            ReconcileRequest { obj_ref, reason: ReconcileReason::ObjectUpdated }
        });
        std::future::ready(Ok(request))
    })
}

fn handle_deletion<K: Resource>(watching: &ControllerWatches, object: &K) {
    watching.record_deletion();
    watching.causes.forget(&reconcile_key(object));
    if let (Some(shared), Some(uid)) = (watching.trail.get().and_then(Trail::shared), &object.meta().uid) {
        shared.tracked_objects.forget(uid);
    }
}

/// Requests for the owners of changed objects.
pub(super) fn owner_requests<K, C>(
    watching: Arc<ControllerWatches>,
    events: impl Stream<Item = Result<Event<PartialObjectMeta<C>>, watcher::Error>>,
    watched: RelatedWatch,
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
    related_requests(watching, events, watched, kind, true, mapper)
}

/// Requests for the objects that the mapper returns.
pub(super) fn mapped_requests<K, O, I>(
    watching: Arc<ControllerWatches>,
    events: impl Stream<Item = Result<Event<O>, watcher::Error>>,
    watched: RelatedWatch,
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
    related_requests(watching, events, watched, kind, false, move |object: &O| {
        mapper(object.clone()).into_iter().collect()
    })
}

fn related_requests<K, O>(
    watching: Arc<ControllerWatches>,
    events: impl Stream<Item = Result<Event<O>, watcher::Error>>,
    watched: RelatedWatch,
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
    let mut progress = SyncTracker(Some(UnsyncedWatch::new(&watching)));
    let mut first = children.then(HashSet::new);
    let seen = futures_util::StreamExt::map(events, move |event| {
        let requests =
            event.as_ref().map(|event| requests_for_event(&watching, &watched, &kind, &mut first, event, &mapper));
        let requests = requests.unwrap_or_default();
        progress.observe_event(&event);
        event.map(|_| stream::iter(requests.into_iter().map(Ok)))
    });
    seen.try_flatten()
}

/// Records an event and returns the requests that it causes.
fn requests_for_event<K, O>(
    watching: &ControllerWatches,
    watched: &RelatedWatch,
    kind: &O::DynamicType,
    shown: &mut Option<HashSet<ChildRef>>,
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
        Event::Apply(object) | Event::Delete(object) => (object, RunReason::RelatedObjectUpdated),
        Event::InitApply(object) => (object, RunReason::InitialList),
        Event::Init => {
            shown.iter_mut().for_each(HashSet::clear);
            return Vec::new();
        }
        Event::InitDone => {
            watching.complete_list(watched, shown.as_mut());
            return Vec::new();
        }
    };
    watching.record_revision(&watched.kind, object);
    let objects = mapper(object);
    if !objects.is_empty()
        && let Some(shown) = shown
    {
        watching.record_child(watched, event, shown);
    }
    let related = ObjectRef::from_obj_with(object, kind.clone()).erase();
    let context = watching.context_of(object);
    let request = |obj_ref: ObjectRef<K>| {
        let key = ReconcileKey { namespace: obj_ref.namespace.clone(), name: obj_ref.name.clone() };
        watching.record_cause(key, reason, Some(related.to_string()), context.clone());
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
        let watching = Arc::new(ControllerWatches::default());
        let departures = |event: Event<ConfigMap>| {
            let watching = Arc::clone(&watching);
            async move {
                let before = *watching.deletions.borrow();
                let events = primary_requests(Arc::clone(&watching), stream::iter([Ok(event)]), ());
                events.for_each(|_| std::future::ready(())).await;
                *watching.deletions.borrow() - before
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
