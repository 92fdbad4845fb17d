//! What the scheduler looks at: all nodes, all pods, and the ConfigMap of its configuration.

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
use kubewake_trail::in_words;
use serde::de::DeserializeOwned;

/// Something was seen.
#[derive(Debug)]
pub enum Seen {
    /// A pod, or that a list of all of them begins or ends.
    Pod(Box<Event<Pod>>),
    /// A node, likewise.
    Node(Box<Event<Node>>),
    /// The configuration.
    ConfigMap(Box<ConfigMap>),
}

/// Everything, for ever.
pub fn everything(client: &Client, namespace: &str, config_map: &str) -> BoxStream<'static, Seen> {
    let only = watcher::Config::default().fields(&format!("metadata.name={config_map}"));
    let config_maps = of(Api::namespaced(client.clone(), namespace), only);
    let config_maps = config_maps.filter_map(|event| async {
        match event {
            Event::Apply(config_map) | Event::InitApply(config_map) => Some(Seen::ConfigMap(Box::new(config_map))),
            // A scheduler whose configuration is gone is about to go itself; until then it goes on as it was.
            Event::Delete(_) | Event::Init | Event::InitDone => None,
        }
    });
    let all = watcher::Config::default;
    let pods = of(Api::all(client.clone()), all()).map(|event| Seen::Pod(Box::new(event)));
    let nodes = of(Api::all(client.clone()), all()).map(|event| Seen::Node(Box::new(event)));
    stream::select(config_maps, stream::select(pods, nodes)).boxed()
}

/// The events of one kind. What fails is tried again by the watcher itself.
fn of<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, config).default_backoff().filter_map(|event| async {
        match event {
            // Nobody here looks at them, and they are the larger part of an object.
            Ok(event) => Some(event.modify(|object| object.managed_fields_mut().clear())),
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), error = in_words(&error), "it cannot be watched");
                None
            }
        }
    })
}
