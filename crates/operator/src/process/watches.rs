//! The watches of single kinds that fill a store.

use std::{fmt::Debug, sync::Arc};

use futures_util::{StreamExt as _, future};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    runtime::{
        WatchStreamExt as _, reflector,
        reflector::Store,
        watcher::{self, Event, watcher},
    },
};
use kubewake_api::v1alpha1::Telemetry;
use kubewake_trail::error_chain;
use serde::de::DeserializeOwned;

use super::operator::Operator;
use crate::{
    feedback::shutdown_losses::ShutdownLosses,
    model::names,
    pipeline::settings::{SettingsWriter, default_telemetry},
    runtime::{failure_cause::FailureCause, metrics::ReconcileStep, resync_trigger::ResyncTrigger},
};

impl Operator {
    /// Watches the Telemetry, whose valid settings are put in force before anybody is notified.
    pub(super) fn watch_telemetries(
        &self,
        resync_trigger: &ResyncTrigger,
        settings: &Arc<SettingsWriter>,
    ) -> (Store<Telemetry>, impl Future<Output = ()> + use<>) {
        let settings = Arc::clone(settings);
        let api = Api::<Telemetry>::all(self.client.clone());
        self.watch_objects(api, watcher::Config::default(), resync_trigger, move |event, telemetries| {
            // While a list is read the store holds the state before it.
            if !matches!(event, Event::Init | Event::InitApply(_)) {
                settings.update(default_telemetry(telemetries).as_deref());
            }
        })
    }

    /// Watches the pods of collectors in a namespace, for the losses that they report when they end. A deleted pod
    /// is observed in its last state.
    pub(super) fn watch_collector_pods(
        &self,
        namespace: &str,
        resync_trigger: &ResyncTrigger,
        losses: &Arc<ShutdownLosses>,
    ) -> (Store<Pod>, impl Future<Output = ()> + use<>) {
        let losses = Arc::clone(losses);
        let api = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let of_collectors = watcher::Config::default().labels(&names::collector_selector());
        self.watch_objects(api, of_collectors, resync_trigger, move |event, _| match event {
            Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod) => losses.observe_pod(pod),
            Event::Init | Event::InitDone => {}
        })
    }

    /// Returns a store of objects, and the future that watches them. Every event notifies the trigger after the
    /// store and `observe` have seen it.
    fn watch_objects<K, F>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        resync_trigger: &ResyncTrigger,
        observe: F,
    ) -> (Store<K>, impl Future<Output = ()> + use<K, F>)
    where
        F: Fn(&Event<K>, &Store<K>),
        K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let (reader, writer) = reflector::store();
        let store = reader.clone();
        let resync_trigger = resync_trigger.clone();
        let metrics = Arc::clone(&self.metrics);
        // Managed fields are larger than the rest of most objects, and are not read here.
        let objects = watcher(api, config).modify(|object| object.meta_mut().managed_fields = None);
        let events = reflector::reflector(writer, objects.default_backoff());
        let work = events.for_each(move |event| {
            match event {
                Ok(event) => {
                    observe(&event, &store);
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
