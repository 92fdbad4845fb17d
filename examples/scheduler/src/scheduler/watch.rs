//! The watches of the scheduler: all nodes, all pods, and the ConfigMap of its configuration.

use std::fmt::Debug;

use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use kubewake_trail::error_chain;
use serde::de::DeserializeOwned;

#[derive(Debug)]
pub enum SchedulerEvent {
    /// An event of a pod, or the begin or end of a list.
    Pod(Box<Event<Pod>>),
    Node(Box<Event<Node>>),
    ConfigMap(Box<ConfigMap>),
}

pub fn watch_all(client: &Client, namespace: &str, config_map: &str) -> BoxStream<'static, SchedulerEvent> {
    let only = watcher::Config::default().fields(&format!("metadata.name={config_map}"));
    let config_maps = watch_kind(Api::namespaced(client.clone(), namespace), only);
    let config_maps = config_maps.filter_map(|event| async {
        match event {
            Event::Apply(config_map) | Event::InitApply(config_map) => {
                Some(SchedulerEvent::ConfigMap(Box::new(config_map)))
            }
            // Without its configuration the scheduler is about to be deleted; until then it keeps the last one.
            Event::Delete(_) | Event::Init | Event::InitDone => None,
        }
    });
    let all = watcher::Config::default;
    let pods = watch_kind(Api::all(client.clone()), all()).map(|event| SchedulerEvent::Pod(Box::new(event)));
    let nodes = watch_kind(Api::all(client.clone()), all()).map(|event| SchedulerEvent::Node(Box::new(event)));
    stream::select(config_maps, stream::select(pods, nodes)).boxed()
}

/// Watches one kind. The watcher itself retries errors.
fn watch_kind<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, config).default_backoff().filter_map(|event| async {
        match event {
            // Managed fields are not used here, and are the larger part of an object.
            Ok(event) => Some(event.modify(|object| object.managed_fields_mut().clear())),
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), error = error_chain(&error), "failed to watch objects");
                None
            }
        }
    })
}
