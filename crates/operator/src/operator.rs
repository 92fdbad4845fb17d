//! The whole operator: it stands for election, and works while it leads.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, future};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt as _, controller, reflector,
        reflector::Store,
        watcher::{self, Event, watcher},
    },
};
use kubewake_api::{
    Signal,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline},
};
use kubewake_trail::{Controller, Trail, in_words};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, time::sleep};

use crate::{
    bell::Bell,
    cause::Cause,
    context::{Options, Pipelines, World},
    delivery,
    desk::Desk,
    kind::Kind,
    leader::{Candidate, Terms},
    leftovers,
    live::Live,
    losses::Losses,
    metrics::{Metrics, Queue, Step},
    monitors, names,
    reconcile::{Context, Error as ReconcileError, PipelineKind, again, reconcile},
    secrets::Sources,
    telemetry,
    verdicts::Verdicts,
    written::Written,
};

/// How long what is under way may take when the operator is to end: a pod has 30 s, and the Lease is to be given back, too.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the operator ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It may not hold the Lease.
    #[error("there can be no Lease {namespace}/{name}", name = names::LEASE)]
    Lease {
        /// The operator's namespace.
        namespace: String,
        /// Why.
        source: kube::Error,
    },
}

/// The operator.
pub struct Operator {
    /// A client whose calls are traced.
    pub client: Client,
    /// A client for the Lease, whose calls come every few seconds and are of no interest to anybody.
    pub leases: Client,
    /// Traces reconciles.
    pub trail: Trail,
    /// How to work.
    pub options: Options,
    /// How to stand for election.
    pub terms: Terms,
    /// Counts what is done.
    pub metrics: Arc<Metrics>,
}

/// What is to be done when it does not lead on as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    End,
    Anew,
}

impl Operator {
    /// Works until `stop`: waits until it leads, and leads. What is under way then is finished. Who does not lead any more stands for election again.
    ///
    /// # Errors
    /// If it may not stand for election. An API server that cannot be reached is waited for.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + Sync + 'static) -> Result<(), Error> {
        let (stop, namespace) = (stop.shared(), &self.options.namespace);
        let mut candidate = Candidate::new(&self.leases, namespace, &self.terms);
        loop {
            tokio::select! {
                elected = candidate.elected() => {
                    elected.map_err(|source| Error::Lease { namespace: namespace.clone(), source })?;
                }
                () = stop.clone() => break,
            }
            if self.term(&mut candidate, stop.clone()).await == Next::End {
                break;
            }
        }
        candidate.resign().await;
        Ok(())
    }

    /// Leads, until it is to end or another may lead.
    async fn term(
        &self,
        candidate: &mut Candidate,
        stop: impl Future<Output = ()> + Clone + Send + Sync + 'static,
    ) -> Next {
        tracing::info!(identity = self.terms.identity, "this operator leads");
        self.metrics.leads(true);
        let next = tokio::select! {
            // Nothing is begun by one that was away for too long.
            biased;
            () = candidate.deposed() => Next::Anew,
            () = self.lead(stop) => Next::End,
        };
        self.metrics.leads(false);
        tracing::info!(identity = self.terms.identity, "this operator does not lead any more");
        next
    }

    /// Leads, until it is to end.
    async fn lead(&self, stop: impl Future<Output = ()> + Clone + Send + Sync + 'static) {
        let (bell, all) = (Bell::default(), watcher::Config::default());
        let client = &self.client;
        let traces = Controller::new(Api::<TracePipeline>::all(client.clone()), all.clone());
        let logs = Controller::new(Api::<LogPipeline>::all(client.clone()), all.clone());
        let metrics = Controller::new(Api::<MetricPipeline>::all(client.clone()), all);
        let queue = |signal| Queue::new(&self.metrics, signal);
        let traces = traces.observe_queue(queue(Signal::Traces));
        let logs = logs.observe_queue(queue(Signal::Logs));
        let metrics = metrics.observe_queue(queue(Signal::Metrics));
        let pipelines = Pipelines { traces: traces.store(), logs: logs.store(), metrics: metrics.store() };
        let departures = [traces.departures(), logs.departures(), metrics.departures()];
        let departures = departures.map(|departures| bell.clone().ring_on(departures));
        let telemetries = Api::<Telemetry>::all(client.clone());
        let (telemetry, watch_telemetry) = self.follow(telemetries, watcher::Config::default(), &bell, |_| {});
        let of_collectors = watcher::Config::default().labels(&names::of_collectors());
        let pods = Api::<Pod>::namespaced(client.clone(), &self.options.namespace);
        let losses = Arc::new(Losses::new(bell.clone()));
        let seen = Arc::clone(&losses);
        let (pods, watch_pods) = self.follow(pods, of_collectors, &bell, move |pod| seen.observe(pod));
        let world = Arc::new(self.world(bell.clone(), pipelines, telemetry, (pods, losses)));
        let context = Arc::new(Context::new(Arc::clone(&world), self.trail.clone()));
        let clear = async {
            world.see().await;
            context.settled().await;
            tracing::info!("everything was looked at once");
            leftovers::follow(&world, &context).await
        };
        let late = {
            let stop = stop.clone();
            async move {
                stop.await;
                sleep(PATIENCE).await;
            }
        };
        let work = future::join3(
            self.control(traces, &bell, &context, stop.clone()),
            self.control(logs, &bell, &context, stop.clone()),
            self.control(metrics, &bell, &context, stop),
        );
        let watches = future::join5(
            world.live.follow(Kind::ALWAYS, client, &self.options.namespace, &self.metrics),
            monitors::follow(&world),
            watch_telemetry,
            watch_pods,
            future::join_all(departures),
        );
        let duties = future::join3(delivery::follow(&world), telemetry::follow(&world, context.events()), clear);
        tokio::select! {
            _ = work => {}
            _ = watches => {}
            _ = duties => {}
            () = late => tracing::warn!("what is under way is not finished"),
        }
    }

    fn world(
        &self,
        bell: Bell,
        pipelines: Pipelines,
        telemetry: Store<Telemetry>,
        (pods, losses): (Store<Pod>, Arc<Losses>),
    ) -> World {
        World {
            client: self.client.clone(),
            options: self.options.clone(),
            live: Arc::new(Live::new(Kind::ALWAYS, bell.clone())),
            sources: Sources::new(self.client.clone(), bell.clone(), Arc::clone(&self.metrics)),
            desk: Desk::default(),
            verdicts: Arc::new(Verdicts::new(bell.clone())),
            losses,
            pods,
            pipelines,
            seen: watch::Sender::new(false),
            telemetries: telemetry,
            written: Written::default(),
            failure: watch::Sender::new(None),
            last_settings: Mutex::default(),
            metrics: Arc::clone(&self.metrics),
            bell,
        }
    }

    /// Runs the controller of one kind.
    async fn control<K: PipelineKind>(
        &self,
        controller: Controller<K>,
        bell: &Bell,
        context: &Arc<Context>,
        stop: impl Future<Output = ()> + Send + Sync + 'static,
    ) {
        let controller = controller.reconcile_all_on(bell.strokes()).graceful_shutdown_on(stop);
        // On its own, since all pipelines are looked at at once: inside of what wraps it it would be there several times.
        let reconcile = |object, context| reconcile(object, context).boxed();
        let runs = controller.run(self.trail.clone(), reconcile, again, Arc::clone(context));
        runs.for_each(async |result| self.report(result)).await;
    }

    /// Tells of watches that do not work. What reconciles have to say is said by [`again`].
    fn report<T>(&self, result: Result<T, controller::Error<ReconcileError, watcher::Error>>) {
        if let Err(controller::Error::QueueError(error)) = result {
            self.metrics.failed(Step::Watch, Cause::from(&error));
            tracing::warn!(error = in_words(&error), "pipelines cannot be watched");
        }
    }

    /// Objects as a watch shows them, and the work of watching them. Every change rings the bell, after `observe` has seen it: an object that goes is seen as it was at
    /// the end.
    fn follow<K, F>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        bell: &Bell,
        observe: F,
    ) -> (Store<K>, impl Future<Output = ()> + use<K, F>)
    where
        F: Fn(&K),
        K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let (reader, writer) = reflector::store();
        let (bell, metrics) = (bell.clone(), Arc::clone(&self.metrics));
        // Who wrote which field is more than the rest of most objects, and of interest to nobody here.
        let objects = watcher(api, config).modify(|object| object.meta_mut().managed_fields = None);
        let events = reflector::reflector(writer, objects.default_backoff());
        let work = events.for_each(move |event| {
            match event {
                Ok(event) => {
                    match &event {
                        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => observe(object),
                        Event::Init | Event::InitDone => {}
                    }
                    bell.ring();
                }
                Err(error) => {
                    metrics.failed(Step::Watch, Cause::from(&error));
                    tracing::warn!(kind = %K::kind(&()), error = in_words(&error), "objects cannot be watched");
                }
            }
            future::ready(())
        });
        (reader, work)
    }
}
