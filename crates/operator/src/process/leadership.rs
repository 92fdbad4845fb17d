//! What a leading operator does: it fills the caches, and runs one worker per duty.
//!
//! Each worker gets the caches that it reads, and the writers of those that it may change: who writes what can be
//! read off [`CacheWriters`] and `build_workers`.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future};
use kube::{
    Api, Client,
    runtime::{controller, watcher},
};
use kubewake_api::{
    Signal,
    v1alpha1::{LogPipeline, MetricPipeline, TracePipeline},
};
use kubewake_trail::{Controller, error_chain, events::EventPublisher};
use tokio::{sync::watch, time::sleep};

use super::operator::{Operator, OperatorOptions};
use crate::{
    feedback::{
        deleted_pipelines::{self, PipelineCleanup},
        delivery,
        delivery_health::DeliveryHealthWriter,
        shutdown_losses::ShutdownLosses,
    },
    layer::{CollectorReconciler, LayerOptions, LayerRuns, orphans::OrphanCollector},
    model::{names, object_kind::ObjectKind},
    objects::{apply::ServerSideApplier, collector_pods::CollectorPods, object_cache::ObjectCacheWriter, pod_monitors},
    pipeline::{
        cluster_view::ClusterView,
        pipeline_cache::PipelineCacheWriter,
        pipeline_stores::{PipelineKind, PipelineStores},
        settings::SettingsWriter,
        source_watcher::SourceWatcher,
    },
    reconcile::{
        PipelineReconcileError, PipelineReconciler, ReconcilerParts, error_policy, reconcile,
        telemetry::TelemetryReconciler,
    },
    runtime::{
        failure_cause::FailureCause,
        metrics::{OperatorMetrics, QueueMetrics, ReconcileStep},
        resync_trigger::ResyncTrigger,
    },
};

/// The time for work in progress when the operator ends: a pod has 30 s, and the Lease must be released, too.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

impl Operator {
    /// Runs all controllers until `stop`, and finishes work in progress.
    pub(super) async fn run_as_leader(&self, stop: impl Future<Output = ()> + Clone + Send + Sync + 'static) {
        let Self { client, options: OperatorOptions { namespace, agent_namespace, resync, .. }, metrics, .. } = self;
        let resync_trigger = ResyncTrigger::default();
        let controllers = PipelineControllers::new(client, metrics);
        let writers = CacheWriters::new(namespace, &resync_trigger);
        let losses = Arc::new(ShutdownLosses::new(resync_trigger.clone()));
        let (telemetries, watch_telemetries) = self.watch_telemetries(&resync_trigger, &writers.settings);
        let (pods, watch_pods) = self.watch_collector_pods(namespace, &resync_trigger, &losses);
        let (agent_pods, watch_agent_pods) = self.watch_collector_pods(agent_namespace, &resync_trigger, &losses);
        let synced = watch::Sender::new(false);
        let view = ClusterView {
            pipelines: controllers.stores(),
            telemetries,
            settings: writers.settings.reader(),
            objects: writers.objects.reader(),
            agent_objects: writers.agent_objects.reader(),
            pods: CollectorPods::new(pods, agent_pods),
            synced: synced.subscribe(),
        };
        let deletions = controllers.deletions().into_iter().map(|deletions| {
            let trigger = resync_trigger.clone().notify_on_change(deletions.clone());
            future::join(trigger, writers.pipelines.clone().follow_deletions(deletions))
        });
        let deletions = future::join_all(deletions);
        let workers = self.build_workers(&view, &writers, losses, &resync_trigger);
        let first_run = async {
            view.wait_listed().await;
            synced.send_replace(true);
            workers.layer.reconcile().await;
            tracing::info!("completed the first reconcile of the collector layer");
            workers.orphans.run(&workers.layer, &resync_trigger).await;
        };
        let deadline = {
            let stop = stop.clone();
            async move {
                stop.await;
                sleep(SHUTDOWN_TIMEOUT).await;
            }
        };
        let PipelineControllers { traces, logs, metrics: metric_pipelines } = controllers;
        let reconciles = future::join3(
            self.run_controller(traces, &resync_trigger, &workers.pipelines, stop.clone()),
            self.run_controller(logs, &resync_trigger, &workers.pipelines, stop.clone()),
            self.run_controller(metric_pipelines, &resync_trigger, &workers.pipelines, stop),
        );
        let watches = future::join5(
            writers.objects.watch_kinds(ObjectKind::REQUIRED, client, namespace, metrics),
            pod_monitors::follow_pod_monitors(&writers.objects, client, namespace, metrics, *resync),
            watch_telemetries,
            future::join(watch_pods, watch_agent_pods),
            deletions,
        );
        let agent_watches = future::join(
            writers.agent_objects.watch_kinds(ObjectKind::AGENT_KINDS, client, agent_namespace, metrics),
            pod_monitors::follow_pod_monitors(&writers.agent_objects, client, agent_namespace, metrics, *resync),
        );
        let duties = future::join4(
            delivery::poll_collectors(&view, &writers.delivery_health),
            workers.telemetry.run(&resync_trigger),
            deleted_pipelines::report_deleted_pipelines(&view, &workers.cleanup, &resync_trigger, &workers.events),
            first_run,
        );
        tokio::select! {
            _ = reconciles => {}
            _ = watches => {}
            _ = agent_watches => {}
            _ = duties => {}
            () = deadline => tracing::warn!("stopping before all reconciles have finished"),
        }
    }

    /// Gives each worker the caches that it reads and the writers that it needs.
    fn build_workers(
        &self,
        view: &ClusterView,
        writers: &CacheWriters,
        losses: Arc<ShutdownLosses>,
        resync_trigger: &ResyncTrigger,
    ) -> Workers {
        let Self { client, options, metrics, trail, .. } = self;
        let events = trail.events(client.clone(), names::FIELD_MANAGER).distinct_by_note();
        let applier = ServerSideApplier::new(client.clone(), &options.namespace, writers.objects.clone());
        let sources = SourceWatcher::new(client.clone(), resync_trigger.clone(), Arc::clone(metrics));
        let sources = Arc::new(sources);
        let cleanup = Arc::new(PipelineCleanup {
            pipelines: view.pipelines.clone(),
            cache: writers.pipelines.clone(),
            metrics: Arc::clone(metrics),
            losses: Arc::clone(&losses),
            sources: Arc::clone(&sources),
        });
        let layer = Arc::new(CollectorReconciler {
            client: client.clone(),
            options: LayerOptions {
                namespace: options.namespace.clone(),
                agent_namespace: options.agent_namespace.clone(),
                image: options.image.clone(),
            },
            view: view.clone(),
            pipeline_cache: writers.pipelines.reader(),
            delivery_health: writers.delivery_health.reader(),
            cleanup: Arc::clone(&cleanup),
            applier: applier.clone(),
            agent_applier: ServerSideApplier::new(
                client.clone(),
                &options.agent_namespace,
                writers.agent_objects.clone(),
            ),
            metrics: Arc::clone(metrics),
            runs: LayerRuns::default(),
        });
        let telemetry = TelemetryReconciler {
            client: client.clone(),
            namespace: options.namespace.clone(),
            view: view.clone(),
            layer: Arc::clone(&layer),
            cleanup: Arc::clone(&cleanup),
            events: events.clone(),
            metrics: Arc::clone(metrics),
        };
        let orphans = OrphanCollector {
            client: client.clone(),
            namespace: options.namespace.clone(),
            view: view.clone(),
            applier: applier.clone(),
            metrics: Arc::clone(metrics),
        };
        let pipelines = Arc::new(PipelineReconciler::new(ReconcilerParts {
            client: client.clone(),
            namespace: options.namespace.clone(),
            resync: options.resync,
            trail: trail.clone(),
            events: events.clone(),
            view: view.clone(),
            sources,
            pipeline_cache: writers.pipelines.clone(),
            objects: writers.objects.clone(),
            applier,
            layer: Arc::clone(&layer),
            delivery_health: writers.delivery_health.reader(),
            losses,
            metrics: Arc::clone(metrics),
        }));
        Workers { pipelines, layer, telemetry, orphans, cleanup, events }
    }

    /// Runs the controller of one kind.
    async fn run_controller<K: PipelineKind>(
        &self,
        controller: Controller<K>,
        resync_trigger: &ResyncTrigger,
        reconciler: &Arc<PipelineReconciler>,
        stop: impl Future<Output = ()> + Send + Sync + 'static,
    ) {
        let controller = controller.reconcile_all_on(resync_trigger.subscribe()).graceful_shutdown_on(stop);
        // Boxed, since reconciles of all pipelines run at once: the wrapping futures would each have room for
        // it.
        let reconcile = |object, reconciler| reconcile(object, reconciler).boxed();
        let runs = controller.run(self.trail.clone(), reconcile, error_policy, Arc::clone(reconciler));
        runs.for_each(async |result| self.report(result)).await;
    }

    /// Reports errors of watches. Errors of reconciles are reported by [`error_policy`].
    fn report<T>(&self, result: Result<T, controller::Error<PipelineReconcileError, watcher::Error>>) {
        if let Err(controller::Error::QueueError(error)) = result {
            self.metrics.count_failure(ReconcileStep::Watch, FailureCause::from(&error));
            tracing::warn!(error = error_chain(&error), "failed to watch pipelines");
        }
    }
}

/// The controllers of all kinds of pipelines.
struct PipelineControllers {
    traces: Controller<TracePipeline>,
    logs: Controller<LogPipeline>,
    metrics: Controller<MetricPipeline>,
}

impl PipelineControllers {
    fn new(client: &Client, metrics: &Arc<OperatorMetrics>) -> Self {
        let all = watcher::Config::default;
        let queue = |signal| QueueMetrics::new(metrics, signal);
        Self {
            traces: Controller::new(Api::all(client.clone()), all()).observe_queue(queue(Signal::Traces)),
            logs: Controller::new(Api::all(client.clone()), all()).observe_queue(queue(Signal::Logs)),
            metrics: Controller::new(Api::all(client.clone()), all()).observe_queue(queue(Signal::Metrics)),
        }
    }

    fn stores(&self) -> PipelineStores {
        PipelineStores { traces: self.traces.store(), logs: self.logs.store(), metrics: self.metrics.store() }
    }

    fn deletions(&self) -> [watch::Receiver<u64>; 3] {
        [self.traces.deletions(), self.logs.deletions(), self.metrics.deletions()]
    }
}

/// The right to change each cache. Workers get those that they need.
struct CacheWriters {
    /// For the watches of objects, and for steps that record responses to their writes.
    objects: ObjectCacheWriter,
    /// The same for the agents' namespace.
    agent_objects: ObjectCacheWriter,
    /// For reconciles, and for the cleanup after deleted pipelines.
    pipelines: PipelineCacheWriter,
    /// For the watch of the Telemetry.
    settings: Arc<SettingsWriter>,
    /// For the polls of collectors.
    delivery_health: DeliveryHealthWriter,
}

impl CacheWriters {
    fn new(namespace: &str, resync_trigger: &ResyncTrigger) -> Self {
        Self {
            objects: ObjectCacheWriter::new(ObjectKind::REQUIRED, resync_trigger.clone()),
            agent_objects: ObjectCacheWriter::new(ObjectKind::AGENT_KINDS, resync_trigger.clone()),
            pipelines: PipelineCacheWriter::default(),
            settings: Arc::new(SettingsWriter::new(namespace)),
            delivery_health: DeliveryHealthWriter::new(resync_trigger.clone()),
        }
    }
}

struct Workers {
    pipelines: Arc<PipelineReconciler>,
    layer: Arc<CollectorReconciler>,
    telemetry: TelemetryReconciler,
    orphans: OrphanCollector,
    cleanup: Arc<PipelineCleanup>,
    events: EventPublisher,
}
