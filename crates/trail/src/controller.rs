//! kube's controller, traced.
//!
//! [`Controller`] has the interface of kube's own and is made of the same parts (`watcher`, `reflector`,
//! `applier`): an author changes a `use` and adds an argument to `run`. It also records why each object is
//! reconciled, which children carry which context, and which revisions the watches showed.
//!
//! *Guaranteed*: the reconciler is called for the same objects and as often as kube's controller calls it, and
//! its result is passed on unchanged. One difference: no run begins before every watch has delivered its
//! initial list or has failed, so that a reconciler never takes a child for missing which was only not listed
//! yet. *Not done*: kube's unstable shared streams; [`Trail::reconcile`] wraps a reconciler for their users.

use std::{fmt::Debug, hash::Hash, sync::Arc};

use futures_util::{
    Future, FutureExt as _, Stream, StreamExt as _, TryFuture, TryFutureExt,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};
use kube::{
    Api, Resource,
    runtime::{
        applier,
        controller::{Action, Config, Error, ReconcileReason, ReconcileRequest},
        reflector::{self, ObjectRef, Store, store::Writer},
        utils::{Backoff, CancelableJoinHandle, StreamBackoff},
        watcher::{self, DefaultBackoff, watcher},
    },
};
use opentelemetry::context::FutureExt as _;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{runtime::Handle, sync::watch as watch_channel};
use tracing::Instrument as _;

use self::{
    reconcile_span::ReconcileSpan,
    run_cause::{RunCause, RunReason},
    watch::ControllerWatches,
};
use crate::trail::Trail;

mod reconcile_span;
mod run_cause;
mod watch;

pub use run_cause::QueueObserver;

type ReconcileRequests<K> = BoxStream<'static, Result<ReconcileRequest<K>, watcher::Error>>;

/// A traced controller for objects of one kind.
pub struct Controller<K>
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash,
{
    triggers: stream::SelectAll<ReconcileRequests<K>>,
    backoff: Box<dyn Backoff + Send>,
    graceful: Vec<BoxFuture<'static, ()>>,
    forceful: Vec<BoxFuture<'static, ()>>,
    kind: K::DynamicType,
    reader: Store<K>,
    config: Config,
    watches: Arc<ControllerWatches>,
}

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Creates a controller for the objects that match the watch configuration.
    #[must_use]
    pub fn new(api: Api<K>, config: watcher::Config) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new_with(api, config, K::DynamicType::default())
    }

    /// Creates a controller for a kind that is only known at run time.
    pub fn new_with(api: Api<K>, config: watcher::Config, kind: K::DynamicType) -> Self {
        let watches = Arc::new(ControllerWatches::default());
        let writer = Writer::<K>::new(kind.clone());
        let reader = writer.as_reader();
        let events = reflector::reflector(writer, watcher(api, config));
        let mut triggers = stream::SelectAll::new();
        triggers.push(watch::primary_requests(Arc::clone(&watches), events, kind.clone()).boxed());
        Self {
            triggers,
            backoff: Box::<DefaultBackoff>::default(),
            // Pending futures: without any trigger the controller would end at once.
            graceful: vec![future::pending().boxed()],
            forceful: vec![future::pending().boxed()],
            kind,
            reader,
            config: Config::default(),
            watches,
        }
    }

    /// Sets concurrency and debounce.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets the backoff after a watch has failed.
    #[must_use]
    pub fn trigger_backoff(mut self, backoff: impl Backoff + 'static) -> Self {
        self.backoff = Box::new(backoff);
        self
    }

    /// The cache of the controller's objects, as the watch shows them.
    pub fn store(&self) -> Store<K> {
        self.reader.clone()
    }

    /// A counter that grows when an object was deleted, which starts no run, and after every relist, when
    /// objects may have disappeared. The store is up to date when it grows.
    pub fn deletions(&self) -> watch_channel::Receiver<u64> {
        self.watches.deletions.subscribe()
    }

    /// Reconciles an object when one of its children changes.
    #[must_use]
    pub fn owns<C>(self, api: Api<C>, config: watcher::Config) -> Self
    where
        C: Clone + Resource<DynamicType = ()> + DeserializeOwned + Debug + Send + 'static,
    {
        self.owns_with(api, (), config)
    }

    /// [`Self::owns`] for a kind that is only known at run time.
    #[must_use]
    pub fn owns_with<C>(mut self, api: Api<C>, kind: C::DynamicType, config: watcher::Config) -> Self
    where
        C: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        C::DynamicType: Debug + Eq + Hash + Clone + Send + Sync,
        K::DynamicType: Send + Sync,
    {
        let watched = watch::RelatedWatch::new(&api, &config, &kind);
        // kube's own controller does the same; the replacement cannot be created from an existing `Api`.
        #[expect(deprecated, reason = "kube has no other way from an Api to its metadata")]
        let events = kube::runtime::metadata_watcher(api, config);
        self.triggers
            .push(watch::owner_requests(Arc::clone(&self.watches), events, watched, kind, self.kind.clone()).boxed());
        self
    }

    /// Reconciles the objects that the mapper names when an object of another kind changes.
    #[must_use]
    pub fn watches<O, I>(
        self,
        api: Api<O>,
        config: watcher::Config,
        mapper: impl Fn(O) -> I + Sync + Send + 'static,
    ) -> Self
    where
        O: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        O::DynamicType: Default + Debug + Clone + Eq + Hash + Send + Sync,
        K::DynamicType: Send + Sync,
        I: 'static + IntoIterator<Item = ObjectRef<K>>,
        I::IntoIter: Send,
    {
        self.watches_with(api, O::DynamicType::default(), config, mapper)
    }

    /// [`Self::watches`] for a kind that is only known at run time.
    #[must_use]
    pub fn watches_with<O, I>(
        mut self,
        api: Api<O>,
        kind: O::DynamicType,
        config: watcher::Config,
        mapper: impl Fn(O) -> I + Sync + Send + 'static,
    ) -> Self
    where
        O: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        O::DynamicType: Debug + Clone + Eq + Hash + Send + Sync,
        K::DynamicType: Send + Sync,
        I: 'static + IntoIterator<Item = ObjectRef<K>>,
        I::IntoIter: Send,
    {
        let watched = watch::RelatedWatch::new(&api, &config, &kind);
        let events = watcher(api, config);
        self.triggers.push(watch::mapped_requests(Arc::clone(&self.watches), events, watched, kind, mapper).boxed());
        self
    }

    /// Reconciles every object each time the stream yields.
    #[must_use]
    pub fn reconcile_all_on(mut self, trigger: impl Stream<Item = ()> + Send + 'static) -> Self
    where
        K::DynamicType: Send + Sync,
    {
        let store = self.store();
        let kind = self.kind.clone();
        let watching = Arc::clone(&self.watches);
        let all = trigger.flat_map(move |()| {
            let kind = kind.clone();
            let watching = Arc::clone(&watching);
            stream::iter(store.state().into_iter().map(move |object| {
                watching.record_cause(watch::reconcile_key(&*object), RunReason::ReconcileAll, None, None);
                let obj_ref = ObjectRef::from_obj_with(&*object, kind.clone());
                Ok(ReconcileRequest { obj_ref, reason: ReconcileReason::BulkReconcile })
            }))
        });
        self.triggers.push(all.boxed());
        self
    }

    /// Sets the observer of the queue. Only the first one that is set is called.
    #[must_use]
    pub fn observe_queue(self, queue: impl QueueObserver) -> Self {
        self.watches.causes.set_queue_observer(queue);
        self
    }

    /// Starts no new run once the future completes, and ends when all running reconciles have ended.
    #[must_use]
    pub fn graceful_shutdown_on(mut self, trigger: impl Future<Output = ()> + Send + Sync + 'static) -> Self {
        self.graceful.push(trigger.boxed());
        self
    }

    /// Shuts down gracefully on SIGTERM or Ctrl-C, and at once on the second signal.
    #[must_use]
    pub fn shutdown_on_signal(mut self) -> Self {
        let (ask, asked) = tokio::sync::oneshot::channel::<()>();
        self.graceful.push(asked.map(drop).boxed());
        self.forceful.push(
            async {
                shutdown_signal().await;
                tracing::info!("shutting down; a second signal stops running reconciles at once");
                drop(ask);
                shutdown_signal().await;
            }
            .boxed(),
        );
        self
    }

    /// Runs the controller. Each run of the reconciler is a span, and its work is inside that span.
    pub fn run<F, Ctx>(
        self,
        trail: Trail,
        mut reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> F,
        error_policy: impl Fn(Arc<K>, &F::Error, Arc<Ctx>) -> Action,
        context: Arc<Ctx>,
    ) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<F::Error, watcher::Error>>>
    where
        K: Serialize,
        K::DynamicType: Debug + Unpin + Send + Sync,
        F: TryFuture<Ok = Action> + Send + 'static,
        F::Error: std::error::Error + Send + 'static,
    {
        self.watches.attach_trail(&trail);
        let watching = Arc::clone(&self.watches);
        let kind = self.kind;
        let missing = Arc::clone(&self.watches);
        let ending = Arc::clone(&self.watches);
        let asked_to_end = future::select_all(self.graceful).map(move |_| ending.begin_shutdown()).boxed().shared();
        let mut forceful = self.forceful;
        forceful.push(shutdown_before_first_list(self.reader.clone(), asked_to_end.clone()).boxed());
        applier(
            move |object, context| {
                let work = TryFutureExt::into_future(reconciler(Arc::clone(&object), context));
                let run = run_after_sync(trail.clone(), Arc::clone(&watching), object, kind.clone(), work);
                CancelableJoinHandle::spawn(run.in_current_span(), &Handle::current())
            },
            error_policy,
            context,
            self.reader,
            StreamBackoff::new(self.triggers, self.backoff).take_until(asked_to_end),
            self.config,
        )
        .inspect(move |result| {
            if let Err(Error::ObjectNotFound(object)) = result {
                missing.forget(&**object);
            }
        })
        .take_until(future::select_all(forceful))
    }
}

/// Completes when the shutdown is requested before the kind was ever listed. kube would wait for that list, for
/// ever if there is no API server; but no run begins before it, so there is nothing to finish.
async fn shutdown_before_first_list<K>(store: Store<K>, asked: impl Future<Output = ()>)
where
    K: Clone + Resource + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    asked.await;
    if let Some(Ok(())) = store.wait_until_ready().now_or_never() {
        future::pending().await
    }
}

impl Trail {
    /// Wraps a reconciler for kube's own controller. The reason of a run is unknown then.
    pub fn reconcile<K, Ctx, F>(
        &self,
        mut reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> F,
    ) -> impl FnMut(Arc<K>, Arc<Ctx>) -> BoxFuture<'static, Result<Action, F::Error>>
    where
        K: Resource + Serialize + Send + Sync + 'static,
        K::DynamicType: Default + Send + Sync,
        F: TryFuture<Ok = Action> + Send + 'static,
        F::Error: std::error::Error + Send + 'static,
    {
        let trail = self.clone();
        move |object, context| {
            let work = TryFutureExt::into_future(reconciler(Arc::clone(&object), context));
            let trail = trail.clone();
            async move { traced_run(&trail, &*object, &K::DynamicType::default(), RunCause::default(), work).await }
                .boxed()
        }
    }
}

/// Waits for the initial lists of all watches, then runs the reconciler.
async fn run_after_sync<K, E>(
    trail: Trail,
    watching: Arc<ControllerWatches>,
    object: Arc<K>,
    kind: K::DynamicType,
    work: impl Future<Output = Result<Action, E>>,
) -> Result<Action, E>
where
    K: Resource + Serialize,
    E: std::error::Error + 'static,
{
    if trail.is_enabled() {
        watching.wait_synced().await;
    }
    let cause = watching.take_cause(&watch::reconcile_key(&*object));
    traced_run(&trail, &*object, &kind, cause, work).await
}

async fn traced_run<K, E>(
    trail: &Trail,
    object: &K,
    kind: &K::DynamicType,
    cause: RunCause,
    work: impl Future<Output = Result<Action, E>>,
) -> Result<Action, E>
where
    K: Resource + Serialize,
    E: std::error::Error + 'static,
{
    let Some(shared) = trail.shared() else { return work.await };
    let run = ReconcileSpan::begin(shared, object, kind, cause);
    let result = work.with_context(run.context.clone()).await;
    run.finish(&result);
    result
}

/// Completes on SIGTERM or Ctrl-C; never, if the handler of SIGTERM cannot be installed.
async fn shutdown_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return future::pending().await };
    let interrupt = tokio::signal::ctrl_c().map(drop);
    future::select(std::pin::pin!(terminate.recv()), std::pin::pin!(interrupt)).await;
}
