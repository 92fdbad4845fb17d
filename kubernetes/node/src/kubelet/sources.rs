//! ConfigMaps and Secrets for pods, and notifications of their changes.
//!
//! *Guaranteed*: a reader gets the current version of the API server, or the last one that the informers have
//! seen. All concurrent readers of a version share one request and one copy. Nothing is kept without a user, so
//! that no Secret stays in memory. A holder of [`SourceChanges`] is notified of every later change.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Weak},
};

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::{Api, Client, Resource, ResourceExt};
use kubewake_runtime::lock::Mutex;
use tokio::sync::{OnceCell, broadcast};

use crate::{
    error::{ClusterError, Result},
    informer::{InformerChange, SharedInformer},
    informers::InformerSet,
    key::NamespacedKey,
};

/// The number of buffered changes per reader. A reader that lags further behind refreshes everything.
const MAX_PENDING_CHANGES: usize = 512;

/// The kinds of objects that provide environments and files of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceKind {
    Claim,
    ConfigMap,
    Pod,
    Secret,
    ServiceAccount,
}

impl SourceKind {
    /// The kind in the API.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Claim => "PersistentVolumeClaim",
            Self::ConfigMap => "ConfigMap",
            Self::Pod => "Pod",
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
        }
    }
}

/// A reference to a source object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceRef {
    pub kind: SourceKind,
    pub key: NamespacedKey,
}

impl SourceRef {
    pub fn new(kind: SourceKind, namespace: &str, name: &str) -> Self {
        Self { kind, key: NamespacedKey::new(namespace, name) }
    }
}

/// The data of a ConfigMap or a Secret. `Debug` shows no value.
#[derive(Default)]
pub struct SourceData(BTreeMap<String, Vec<u8>>);

impl SourceData {
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }
}

impl fmt::Debug for SourceData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl From<ConfigMap> for SourceData {
    fn from(object: ConfigMap) -> Self {
        let text = object.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()));
        let bytes = object.binary_data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
        Self(text.chain(bytes).collect())
    }
}

impl From<Secret> for SourceData {
    fn from(object: Secret) -> Self {
        Self(object.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect())
    }
}

/// A read in progress or a result in use. Empty if the object does not exist.
type PendingRead = OnceCell<Option<Arc<SourceData>>>;

/// Reads source objects.
pub struct SourceReader {
    client: Client,
    informers: InformerSet,
    changes: broadcast::Sender<SourceRef>,
    /// By object, with the version to read.
    pending_reads: Mutex<HashMap<SourceRef, (String, Weak<PendingRead>)>>,
}

impl fmt::Debug for SourceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

impl SourceReader {
    /// Creates a reader with this client and these informers. One serves all pods; it listens to the informers
    /// for ever.
    pub fn new(client: Client, views: &InformerSet) -> Arc<Self> {
        let changes = broadcast::Sender::new(MAX_PENDING_CHANGES);
        forward_changes(&views.claims, SourceKind::Claim, &changes, |_| true);
        forward_changes(&views.config_maps, SourceKind::ConfigMap, &changes, |_| true);
        forward_changes(&views.pods, SourceKind::Pod, &changes, has_new_labels);
        forward_changes(&views.secrets, SourceKind::Secret, &changes, |_| true);
        forward_changes(&views.service_accounts, SourceKind::ServiceAccount, &changes, |_| true);
        Arc::new(Self { client, informers: views.clone(), changes, pending_reads: Mutex::default() })
    }

    /// Subscribes to changes. Subscribe before reading, so that no change is missed.
    pub fn subscribe(&self) -> SourceChanges {
        SourceChanges(self.changes.subscribe())
    }

    /// The client for reads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The data of a ConfigMap or a Secret, if it exists.
    pub async fn read_data(&self, wanted: &SourceRef) -> Result<Option<Arc<SourceData>>> {
        let Some(version) = self.cached_version(wanted) else {
            // The informer may not have seen the object yet.
            return self.fetch(wanted).await;
        };
        self.shared_read(wanted, version).get_or_try_init(|| self.fetch(wanted)).await.cloned()
    }

    /// The cached state of a pod.
    pub fn cached_pod(&self, key: &NamespacedKey) -> Option<Arc<Pod>> {
        self.informers.pods.get(key)
    }

    pub async fn get_claim(&self, key: &NamespacedKey) -> Result<Option<Arc<PersistentVolumeClaim>>> {
        self.get_object(&self.informers.claims, key).await
    }

    /// From the informer or, as that may be behind, from the API server.
    async fn get_object<K>(&self, view: &SharedInformer<K>, key: &NamespacedKey) -> Result<Option<Arc<K>>>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + fmt::Debug
            + serde::de::DeserializeOwned,
    {
        if let Some(seen) = view.get(key) {
            return Ok(Some(seen));
        }
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        Ok(api.get_opt(&key.name).await?.map(Arc::new))
    }

    fn cached_version(&self, wanted: &SourceRef) -> Option<String> {
        match wanted.kind {
            SourceKind::ConfigMap => self.informers.config_maps.get(&wanted.key)?.resource_version(),
            SourceKind::Secret => self.informers.secrets.get(&wanted.key)?.resource_version(),
            SourceKind::Claim | SourceKind::Pod | SourceKind::ServiceAccount => None,
        }
    }

    fn shared_read(&self, wanted: &SourceRef, version: String) -> Arc<PendingRead> {
        let mut readings = self.pending_reads.lock();
        if let Some((held, reading)) = readings.get(wanted)
            && *held == version
            && let Some(reading) = reading.upgrade()
        {
            return reading;
        }
        readings.retain(|_, (_, reading)| reading.strong_count() > 0);
        let reading = Arc::new(PendingRead::new());
        readings.insert(wanted.clone(), (version, Arc::downgrade(&reading)));
        reading
    }

    async fn fetch(&self, wanted: &SourceRef) -> Result<Option<Arc<SourceData>>> {
        let NamespacedKey { namespace, name } = &wanted.key;
        let content = match wanted.kind {
            SourceKind::ConfigMap => {
                Api::<ConfigMap>::namespaced(self.client.clone(), namespace).get_opt(name).await?.map(SourceData::from)
            }
            SourceKind::Secret => {
                Api::<Secret>::namespaced(self.client.clone(), namespace).get_opt(name).await?.map(SourceData::from)
            }
            other => return Err(ClusterError::Object(format!("a {} has no values", other.kind_name()))),
        };
        Ok(content.map(Arc::new))
    }
}

/// Forwards the changes of one kind to subscribers.
fn forward_changes<K: Resource + Send + Sync + 'static>(
    view: &SharedInformer<K>,
    kind: SourceKind,
    changes: &broadcast::Sender<SourceRef>,
    counts: fn(&InformerChange<K>) -> bool,
) {
    let changes = changes.clone();
    view.on_change(move |change| {
        if let Some(object) = change.latest().filter(|_| counts(change)) {
            // An error means that there are no subscribers.
            let _ = changes.send(SourceRef { kind, key: NamespacedKey::from_object(&**object) });
        }
    });
}

/// Ignores status changes of a pod: they are frequent and are in no file.
fn has_new_labels(change: &InformerChange<Pod>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let old = &old.metadata;
    let new = &new.metadata;
    (&old.labels, &old.annotations) != (&new.labels, &new.annotations)
}

/// A subscription to changes.
#[derive(Debug)]
pub struct SourceChanges(broadcast::Receiver<SourceRef>);

impl SourceChanges {
    /// Waits until one of these objects is created, changed or deleted.
    pub async fn wait_for_any(&mut self, wanted: &BTreeSet<SourceRef>) {
        loop {
            match self.0.recv().await {
                Ok(changed) if wanted.contains(&changed) => return,
                Ok(_) => {}
                // Some of the missed changes may be relevant.
                Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
