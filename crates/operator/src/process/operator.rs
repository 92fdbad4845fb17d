//! The operator process: stands for election, and runs all controllers while it leads.

use std::{fmt::Debug, sync::Arc, time::Duration};

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
use kubewake_runtime::lock::Mutex;
use kubewake_trail::{Controller, PendingWrites, Trail, error_chain};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, time::sleep};

use crate::{
    context::{OperatorOptions, OperatorState, PipelineStores},
    feedback::{
        delivery,
        delivery_health::DeliveryHealthCache,
        shutdown_losses::{self, ShutdownLosses},
    },
    layer::orphans,
    model::{names, object_kind::ObjectKind},
    objects::{object_cache::ObjectCache, pod_monitors},
    pipeline::{pipeline_cache::PipelineCache, source_watcher::SourceWatcher},
    process::leader::{Candidate, LeaseConfig},
    reconcile::{
        PipelineContext, PipelineKind, PipelineReconcileError as ReconcileError, error_policy, reconcile, telemetry,
    },
    runtime::{
        failure_cause::FailureCause,
        metrics::{OperatorMetrics, QueueMetrics, ReconcileStep},
        resync_trigger::ResyncTrigger,
    },
};

/// The time for work in progress when the operator ends: a pod has 30 s, and the Lease must be released, too.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The API server forbids access to the Lease.
    #[error("failed to access Lease {namespace}/{name}", name = names::LEASE_NAME)]
    Lease { namespace: String, source: kube::Error },
}

pub struct Operator {
    /// A client whose calls are traced.
    pub client: Client,
    /// A client for the Lease, without tracing: its calls come every few seconds and interest nobody.
    pub lease_client: Client,
    pub trail: Trail,
    pub options: OperatorOptions,
    pub lease_config: LeaseConfig,
    pub metrics: Arc<OperatorMetrics>,
}

/// Why leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermEnd {
    Shutdown,
    StandAgain,
}

impl Operator {
    /// Runs until `stop`: waits to be elected, leads, and finishes work in progress. An operator that loses the
    /// Lease stands for election again.
    ///
    /// # Errors
    /// If the API server forbids access to the Lease. An API server that cannot be reached is waited for.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + Sync + 'static) -> Result<(), OperatorError> {
        let stop = stop.shared();
        let namespace = &self.options.namespace;
        let mut candidate = Candidate::new(&self.lease_client, namespace, &self.lease_config);
        loop {
            tokio::select! {
                elected = candidate.wait_until_elected() => {
                    elected.map_err(|source| OperatorError::Lease { namespace: namespace.clone(), source })?;
                }
                () = stop.clone() => break,
            }
            if self.run_term(&mut candidate, stop.clone()).await == TermEnd::Shutdown {
                break;
            }
        }
        candidate.resign().await;
        Ok(())
    }

    /// Leads until `stop` or until the Lease is lost.
    async fn run_term(
        &self,
        candidate: &mut Candidate,
        stop: impl Future<Output = ()> + Clone + Send + Sync + 'static,
    ) -> TermEnd {
        tracing::info!(identity = self.lease_config.identity, "this operator is now the leader");
        self.metrics.set_leading(true);
        let next = tokio::select! {
            // The loss of the Lease is checked first, so that a process that was suspended for too long begins
            // nothing.
            biased;
            () = candidate.wait_until_deposed() => TermEnd::StandAgain,
            () = self.run_as_leader(stop) => TermEnd::Shutdown,
        };
        self.metrics.set_leading(false);
        tracing::info!(identity = self.lease_config.identity, "this operator is no longer the leader");
        next
    }

    /// Runs all controllers until `stop`, and finishes work in progress.
    async fn run_as_leader(&self, stop: impl Future<Output = ()> + Clone + Send + Sync + 'static) {
        let resync_trigger = ResyncTrigger::default();
        let all = watcher::Config::default();
        let client = &self.client;
        let traces = Controller::new(Api::<TracePipeline>::all(client.clone()), all.clone());
        let logs = Controller::new(Api::<LogPipeline>::all(client.clone()), all.clone());
        let metrics = Controller::new(Api::<MetricPipeline>::all(client.clone()), all);
        let queue = |signal| QueueMetrics::new(&self.metrics, signal);
        let traces = traces.observe_queue(queue(Signal::Traces));
        let logs = logs.observe_queue(queue(Signal::Logs));
        let metrics = metrics.observe_queue(queue(Signal::Metrics));
        let pipelines = PipelineStores { traces: traces.store(), logs: logs.store(), metrics: metrics.store() };
        let departures = [traces.deletions(), logs.deletions(), metrics.deletions()];
        let departures = departures.map(|departures| resync_trigger.clone().notify_on_change(departures));
        let telemetries = Api::<Telemetry>::all(client.clone());
        let (telemetry, watch_telemetry) =
            self.watch_objects(telemetries, watcher::Config::default(), &resync_trigger, |_| {});
        let of_collectors = watcher::Config::default().labels(&names::collector_selector());
        let pods = Api::<Pod>::namespaced(client.clone(), &self.options.namespace);
        let losses = Arc::new(ShutdownLosses::new(resync_trigger.clone()));
        let seen = Arc::clone(&losses);
        let (pods, watch_pods) =
            self.watch_objects(pods, of_collectors, &resync_trigger, move |pod| seen.observe_pod(pod));
        let world = Arc::new(self.build_state(resync_trigger.clone(), pipelines, telemetry, (pods, losses)));
        let context = Arc::new(PipelineContext::new(Arc::clone(&world), self.trail.clone()));
        let clear = async {
            world.sync_caches().await;
            context.settled().await;
            tracing::info!("completed the first reconcile of the collector layer");
            orphans::collect_orphans(&world, &context).await
        };
        let late = {
            let stop = stop.clone();
            async move {
                stop.await;
                sleep(SHUTDOWN_TIMEOUT).await;
            }
        };
        let work = future::join3(
            self.run_controller(traces, &resync_trigger, &context, stop.clone()),
            self.run_controller(logs, &resync_trigger, &context, stop.clone()),
            self.run_controller(metrics, &resync_trigger, &context, stop),
        );
        let watches = future::join5(
            world.object_cache.watch_kinds(ObjectKind::REQUIRED, client, &self.options.namespace, &self.metrics),
            pod_monitors::follow_pod_monitors(&world),
            watch_telemetry,
            watch_pods,
            future::join_all(departures),
        );
        let duties = future::join4(
            delivery::poll_collectors(&world),
            telemetry::run(&world, context.events()),
            shutdown_losses::report_deleted_pipelines(&world, context.events()),
            clear,
        );
        tokio::select! {
            _ = work => {}
            _ = watches => {}
            _ = duties => {}
            () = late => tracing::warn!("stopping before all reconciles have finished"),
        }
    }

    fn build_state(
        &self,
        resync_trigger: ResyncTrigger,
        pipelines: PipelineStores,
        telemetry: Store<Telemetry>,
        (pods, losses): (Store<Pod>, Arc<ShutdownLosses>),
    ) -> OperatorState {
        OperatorState {
            client: self.client.clone(),
            options: self.options.clone(),
            object_cache: Arc::new(ObjectCache::new(ObjectKind::REQUIRED, resync_trigger.clone())),
            source_watcher: SourceWatcher::new(self.client.clone(), resync_trigger.clone(), Arc::clone(&self.metrics)),
            pipeline_cache: PipelineCache::default(),
            delivery_health: Arc::new(DeliveryHealthCache::new(resync_trigger.clone())),
            shutdown_losses: losses,
            pods,
            pipelines,
            seen: watch::Sender::new(false),
            telemetries: telemetry,
            pending_statuses: PendingWrites::new(),
            layer_failure: watch::Sender::new(None),
            last_settings: Mutex::default(),
            metrics: Arc::clone(&self.metrics),
            resync_trigger,
        }
    }

    /// Runs the controller of one kind.
    async fn run_controller<K: PipelineKind>(
        &self,
        controller: Controller<K>,
        resync_trigger: &ResyncTrigger,
        context: &Arc<PipelineContext>,
        stop: impl Future<Output = ()> + Send + Sync + 'static,
    ) {
        let controller = controller.reconcile_all_on(resync_trigger.subscribe()).graceful_shutdown_on(stop);
        // Boxed, since reconciles of all pipelines run at once: the wrapping futures would each have room for
        // it.
        let reconcile = |object, context| reconcile(object, context).boxed();
        let runs = controller.run(self.trail.clone(), reconcile, error_policy, Arc::clone(context));
        runs.for_each(async |result| self.report(result)).await;
    }

    /// Reports errors of watches. Errors of reconciles are reported by [`error_policy`].
    fn report<T>(&self, result: Result<T, controller::Error<ReconcileError, watcher::Error>>) {
        if let Err(controller::Error::QueueError(error)) = result {
            self.metrics.count_failure(ReconcileStep::Watch, FailureCause::from(&error));
            tracing::warn!(error = error_chain(&error), "failed to watch pipelines");
        }
    }

    /// Returns a store of objects, and the future that watches them. Every change notifies the trigger after
    /// `observe` has seen it; a deleted object is observed in its last state.
    fn watch_objects<K, F>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        resync_trigger: &ResyncTrigger,
        observe: F,
    ) -> (Store<K>, impl Future<Output = ()> + use<K, F>)
    where
        F: Fn(&K),
        K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let (reader, writer) = reflector::store();
        let resync_trigger = resync_trigger.clone();
        let metrics = Arc::clone(&self.metrics);
        // Managed fields are larger than the rest of most objects, and are not read here.
        let objects = watcher(api, config).modify(|object| object.meta_mut().managed_fields = None);
        let events = reflector::reflector(writer, objects.default_backoff());
        let work = events.for_each(move |event| {
            match event {
                Ok(event) => {
                    match &event {
                        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => observe(object),
                        Event::Init | Event::InitDone => {}
                    }
                    resync_trigger.notify();
                }
                Err(error) => {
                    metrics.count_failure(ReconcileStep::Watch, FailureCause::from(&error));
                    tracing::warn!(kind = %K::kind(&()), error = error_chain(&error), "failed to watch objects");
                }
            }
            future::ready(())
        });
        (reader, work)
    }
}
