//! kube's controller, traced.
//!
//! [`Controller`] has the shape of kube's own and is made of the same parts (`watcher`, `reflector`, `applier`): an author changes a `use` and adds
//! an argument to `run`. In between it notes why each object is looked at, which children carry which context, and which
//! revisions were seen.
//!
//! Guaranteed: the reconciler is called for the same objects and as often as kube's controller calls it. What it returns is passed on unchanged.
//! Different from kube's: no run begins before every watch has delivered what was there at the start, or has failed, so that a reconciler
//! never takes a child for missing which was only not seen yet.
//! Not done: kube's unstable ways to share streams. [`Trail::reconcile`] wraps a reconciler for those who need them.

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
    cause::{Cause, Reason},
    run::Traced,
    watch::Watching,
};
use crate::trail::Trail;

mod cause;
pub(crate) mod objects;
mod queue;
pub(crate) mod relation;
pub(crate) mod repairs;
mod run;
mod watch;

pub use queue::Queue;

type Requests<K> = BoxStream<'static, Result<ReconcileRequest<K>, watcher::Error>>;

/// A controller for objects of one kind, traced.
pub struct Controller<K>
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash,
{
    triggers: stream::SelectAll<Requests<K>>,
    backoff: Box<dyn Backoff + Send>,
    graceful: Vec<BoxFuture<'static, ()>>,
    forceful: Vec<BoxFuture<'static, ()>>,
    kind: K::DynamicType,
    reader: Store<K>,
    config: Config,
    watching: Arc<Watching>,
}

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// A controller for the objects that a watch shows.
    #[must_use]
    pub fn new(api: Api<K>, config: watcher::Config) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new_with(api, config, K::DynamicType::default())
    }

    /// The same for a kind that is only known at run time.
    pub fn new_with(api: Api<K>, config: watcher::Config, kind: K::DynamicType) -> Self {
        let watching = Arc::new(Watching::default());
        let writer = Writer::<K>::new(kind.clone());
        let reader = writer.as_reader();
        let events = reflector::reflector(writer, watcher(api, config));
        let mut triggers = stream::SelectAll::new();
        triggers.push(watch::main(Arc::clone(&watching), events, kind.clone()).boxed());
        Self {
            triggers,
            backoff: Box::<DefaultBackoff>::default(),
            // Without these a controller would end at once, as nobody told it when to.
            graceful: vec![future::pending().boxed()],
            forceful: vec![future::pending().boxed()],
            kind,
            reader,
            config: Config::default(),
            watching,
        }
    }

    /// Sets concurrency and debouncing.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// How long to wait after a watch has failed.
    #[must_use]
    pub fn trigger_backoff(mut self, backoff: impl Backoff + 'static) -> Self {
        self.backoff = Box::new(backoff);
        self
    }

    /// The objects as the watch shows them.
    pub fn store(&self) -> Store<K> {
        self.reader.clone()
    }

    /// Changes when an object is gone, which no run tells of, and when all were listed anew, so that some may be. The store shows it then.
    pub fn departures(&self) -> watch_channel::Receiver<u64> {
        self.watching.departures.subscribe()
    }

    /// Looks at an object again when one that it owns changes.
    #[must_use]
    pub fn owns<C>(self, api: Api<C>, config: watcher::Config) -> Self
    where
        C: Clone + Resource<DynamicType = ()> + DeserializeOwned + Debug + Send + 'static,
    {
        self.owns_with(api, (), config)
    }

    /// The same for a kind that is only known at run time.
    #[must_use]
    pub fn owns_with<C>(mut self, api: Api<C>, kind: C::DynamicType, config: watcher::Config) -> Self
    where
        C: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        C::DynamicType: Debug + Eq + Hash + Clone + Send + Sync,
        K::DynamicType: Send + Sync,
    {
        let watched = watch::Watched::new(&api, &config, &kind);
        // As kube's own controller does; its replacement cannot be made from an `Api` that is there already.
        #[expect(deprecated, reason = "kube has no other way from an Api to its metadata")]
        let events = kube::runtime::metadata_watcher(api, config);
        self.triggers.push(watch::owned(Arc::clone(&self.watching), events, watched, kind, self.kind.clone()).boxed());
        self
    }

    /// Looks at objects again when something else changes that they depend on.
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

    /// The same for a kind that is only known at run time.
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
        let watched = watch::Watched::new(&api, &config, &kind);
        let events = watcher(api, config);
        self.triggers.push(watch::others(Arc::clone(&self.watching), events, watched, kind, mapper).boxed());
        self
    }

    /// Looks at every object whenever the stream says so.
    #[must_use]
    pub fn reconcile_all_on(mut self, trigger: impl Stream<Item = ()> + Send + 'static) -> Self
    where
        K::DynamicType: Send + Sync,
    {
        let (store, kind, watching) = (self.store(), self.kind.clone(), Arc::clone(&self.watching));
        let all = trigger.flat_map(move |()| {
            let (kind, watching) = (kind.clone(), Arc::clone(&watching));
            stream::iter(store.state().into_iter().map(move |object| {
                watching.note(watch::key_of(&*object), Reason::Bulk, None, None);
                let obj_ref = ObjectRef::from_obj_with(&*object, kind.clone());
                Ok(ReconcileRequest { obj_ref, reason: ReconcileReason::BulkReconcile })
            }))
        });
        self.triggers.push(all.boxed());
        self
    }

    /// Tells what waits for a run, and how long it did. There is one to be told: of several, the first.
    #[must_use]
    pub fn observe_queue(self, queue: impl Queue) -> Self {
        self.watching.causes.observe(queue);
        self
    }

    /// Begins nothing new once this is over, and ends when all that runs has ended.
    #[must_use]
    pub fn graceful_shutdown_on(mut self, trigger: impl Future<Output = ()> + Send + Sync + 'static) -> Self {
        self.graceful.push(trigger.boxed());
        self
    }

    /// Ends in good order on SIGTERM and Ctrl-C, and at once on the second.
    #[must_use]
    pub fn shutdown_on_signal(mut self) -> Self {
        let (ask, asked) = tokio::sync::oneshot::channel::<()>();
        self.graceful.push(asked.map(drop).boxed());
        self.forceful.push(
            async {
                signal().await;
                tracing::info!("shutting down; a second signal ends what still runs");
                drop(ask);
                signal().await;
            }
            .boxed(),
        );
        self
    }

    /// Runs. Each run of the reconciler is a span, and whatever it does is inside.
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
        self.watching.begin(&trail);
        let (watching, kind) = (Arc::clone(&self.watching), self.kind);
        let (missing, ending) = (Arc::clone(&self.watching), Arc::clone(&self.watching));
        let asked_to_end = future::select_all(self.graceful).map(move |_| ending.end()).boxed().shared();
        let mut forceful = self.forceful;
        forceful.push(ended_in_vain(self.reader.clone(), asked_to_end.clone()).boxed());
        applier(
            move |object, context| {
                let work = TryFutureExt::into_future(reconciler(Arc::clone(&object), context));
                let run = watched_run(trail.clone(), Arc::clone(&watching), object, kind.clone(), work);
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

/// Over when the controller is asked to end before its kind was ever listed. kube would wait for that list, and for ever where there is no API server; but nothing runs before it, so that nothing has to
/// be finished.
async fn ended_in_vain<K>(store: Store<K>, asked: impl Future<Output = ()>)
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
    /// Wraps a reconciler for kube's own controller. Why a run began is not known then.
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
            async move { traced_run(&trail, &*object, &K::DynamicType::default(), Cause::default(), work).await }
                .boxed()
        }
    }
}

/// Waits for the start to be over, and runs.
async fn watched_run<K, E>(
    trail: Trail,
    watching: Arc<Watching>,
    object: Arc<K>,
    kind: K::DynamicType,
    work: impl Future<Output = Result<Action, E>>,
) -> Result<Action, E>
where
    K: Resource + Serialize,
    E: std::error::Error + 'static,
{
    if trail.is_on() {
        watching.synced().await;
    }
    let cause = watching.take(&watch::key_of(&*object));
    traced_run(&trail, &*object, &kind, cause, work).await
}

async fn traced_run<K, E>(
    trail: &Trail,
    object: &K,
    kind: &K::DynamicType,
    cause: Cause,
    work: impl Future<Output = Result<Action, E>>,
) -> Result<Action, E>
where
    K: Resource + Serialize,
    E: std::error::Error + 'static,
{
    let Some(shared) = trail.shared() else { return work.await };
    let run = Traced::begin(shared, object, kind, cause);
    let result = work.with_context(run.context.clone()).await;
    run.finish(&result);
    result
}

/// SIGTERM or Ctrl-C; never, where neither can be waited for.
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return future::pending().await };
    let interrupt = tokio::signal::ctrl_c().map(drop);
    future::select(std::pin::pin!(terminate.recv()), std::pin::pin!(interrupt)).await;
}
