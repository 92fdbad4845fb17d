//! ConfigMaps and Secrets as a node reads them, and word of what changed.
//!
//! *Guarantees.* A reader gets what the API server has now, or has had since the views last heard of a change. All who read
//! the same version at the same time share one request and one copy; nothing is kept when nobody uses it, so that no Secret
//! stays in memory. Who has [`Changes`] hears of every change after it got them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::{OnceCell, broadcast};

use crate::{
    error::{Error, Result},
    key::Key,
    view::{Change, View},
    views::Views,
};

/// How many changes may wait for a reader. One that falls further behind looks at everything.
const BEHIND: usize = 512;

/// The kinds that a pod's environment and files are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Claim,
    ConfigMap,
    /// Its labels and annotations.
    Pod,
    Secret,
    ServiceAccount,
}

impl Kind {
    /// As the API calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claim => "PersistentVolumeClaim",
            Self::ConfigMap => "ConfigMap",
            Self::Pod => "Pod",
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
        }
    }
}

/// An object that something is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Ref {
    pub kind: Kind,
    pub key: Key,
}

impl Ref {
    /// An object in a namespace.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, key: Key::new(namespace, name) }
    }
}

/// The values of a ConfigMap or a Secret by their keys. `Debug` shows no value.
#[derive(Default)]
pub struct Content(BTreeMap<String, Vec<u8>>);

impl Content {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl From<ConfigMap> for Content {
    fn from(object: ConfigMap) -> Self {
        let text = object.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()));
        let bytes = object.binary_data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
        Self(text.chain(bytes).collect())
    }
}

impl From<Secret> for Content {
    fn from(object: Secret) -> Self {
        Self(object.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect())
    }
}

/// A read that is under way or whose result somebody still uses. Nothing is in it if the object is not there.
type Reading = OnceCell<Option<Arc<Content>>>;

/// Reads what pods are made of.
pub struct Sources {
    client: Client,
    views: Views,
    changes: broadcast::Sender<Ref>,
    /// By object, with the version that was to be read.
    readings: Mutex<HashMap<Ref, (String, Weak<Reading>)>>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

impl Sources {
    /// Reads with this client what these views tell of. One is enough for all pods: it listens to the views for ever.
    pub fn new(client: Client, views: &Views) -> Arc<Self> {
        let changes = broadcast::Sender::new(BEHIND);
        tell(&views.claims, Kind::Claim, &changes, |_| true);
        tell(&views.config_maps, Kind::ConfigMap, &changes, |_| true);
        tell(&views.pods, Kind::Pod, &changes, is_relabelled);
        tell(&views.secrets, Kind::Secret, &changes, |_| true);
        tell(&views.service_accounts, Kind::ServiceAccount, &changes, |_| true);
        Arc::new(Self { client, views: views.clone(), changes, readings: Mutex::default() })
    }

    /// Word of changes from now on. Get it before you read: then no change is missed.
    pub fn changes(&self) -> Changes {
        Changes(self.changes.subscribe())
    }

    /// What the API server is asked with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The values of a ConfigMap or a Secret, if it is there.
    pub async fn read(&self, wanted: &Ref) -> Result<Option<Arc<Content>>> {
        let Some(version) = self.version(wanted) else {
            // The view may not have heard of it yet.
            return self.fetch(wanted).await;
        };
        self.reading(wanted, version).get_or_try_init(|| self.fetch(wanted)).await.cloned()
    }

    /// A pod, as far as it is known.
    pub fn pod(&self, key: &Key) -> Option<Arc<Pod>> {
        self.views.pods.get(key)
    }

    /// A claim of storage.
    pub async fn claim(&self, key: &Key) -> Result<Option<Arc<PersistentVolumeClaim>>> {
        self.object(&self.views.claims, key).await
    }

    /// From the view or, as that may be behind, from the API server.
    async fn object<K>(&self, view: &View<K>, key: &Key) -> Result<Option<Arc<K>>>
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

    fn version(&self, wanted: &Ref) -> Option<String> {
        match wanted.kind {
            Kind::ConfigMap => self.views.config_maps.get(&wanted.key)?.resource_version(),
            Kind::Secret => self.views.secrets.get(&wanted.key)?.resource_version(),
            Kind::Claim | Kind::Pod | Kind::ServiceAccount => None,
        }
    }

    fn reading(&self, wanted: &Ref, version: String) -> Arc<Reading> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((held, reading)) = readings.get(wanted)
            && *held == version
            && let Some(reading) = reading.upgrade()
        {
            return reading;
        }
        readings.retain(|_, (_, reading)| reading.strong_count() > 0);
        let reading = Arc::new(Reading::new());
        readings.insert(wanted.clone(), (version, Arc::downgrade(&reading)));
        reading
    }

    async fn fetch(&self, wanted: &Ref) -> Result<Option<Arc<Content>>> {
        let Key { namespace, name } = &wanted.key;
        let content = match wanted.kind {
            Kind::ConfigMap => {
                Api::<ConfigMap>::namespaced(self.client.clone(), namespace).get_opt(name).await?.map(Content::from)
            }
            Kind::Secret => {
                Api::<Secret>::namespaced(self.client.clone(), namespace).get_opt(name).await?.map(Content::from)
            }
            other => return Err(Error::Object(format!("a {} has no values", other.name()))),
        };
        Ok(content.map(Arc::new))
    }
}

/// Tells of changes of one kind.
fn tell<K: Resource + Send + Sync + 'static>(
    view: &View<K>,
    kind: Kind,
    changes: &broadcast::Sender<Ref>,
    counts: fn(&Change<K>) -> bool,
) {
    let changes = changes.clone();
    view.on_change(move |change| {
        if let Some(object) = change.latest().filter(|_| counts(change)) {
            // Without readers there is nobody to tell.
            let _ = changes.send(Ref { kind, key: Key::of(&**object) });
        }
    });
}

/// A pod's status changes all the time, and is in no file.
fn is_relabelled(change: &Change<Pod>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let (old, new) = (&old.metadata, &new.metadata);
    (&old.labels, &old.annotations) != (&new.labels, &new.annotations)
}

/// What changed, for one reader.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<Ref>);

impl Changes {
    /// Waits until one of these changed, came or went.
    pub async fn any_of(&mut self, wanted: &BTreeSet<Ref>) {
        loop {
            match self.0.recv().await {
                Ok(changed) if wanted.contains(&changed) => return,
                Ok(_) => {}
                // Who knows what was missed.
                Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
