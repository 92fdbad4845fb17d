//! What every namespace has: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt` by which pods know the API server.
//!
//! *Guarantees.* Both are there soon after the namespace is, come back when somebody deletes them, and the ConfigMap says what it
//! should again when somebody changes it. A namespace that is being deleted gets nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use tokio::task::JoinSet;

use super::{MANAGER, write};
use crate::{
    error::{Error, Result},
    key::Key,
    queue::{Again, Queue},
    views::Views,
};

/// For logs.
const NAME: &str = "serviceaccount-controller";
/// Namespaces at once.
const AT_ONCE: usize = 8;
/// The account that a pod has if it names none.
pub const ACCOUNT: &str = "default";
/// The certificate of whoever signs the API server's.
pub const AUTHORITY: &str = "kube-root-ca.crt";
/// kube-controller-manager's words, in an annotation.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as \
    the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Starts the controller. `authority` is in PEM.
pub fn start(client: &Client, views: &Views, authority: String, tasks: &mut JoinSet<()>) {
    let accounts = Arc::new(Accounts { client: client.clone(), views: views.clone(), authority });
    let queue = Queue::default();
    accounts.listen(&queue);
    tasks.spawn(queue.run(NAME, AT_ONCE, move |key| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.reconcile(&key).await }
    }));
}

struct Accounts {
    client: Client,
    views: Views,
    authority: String,
}

impl Accounts {
    /// Keys are those of namespaces.
    fn listen(&self, queue: &Queue<Key>) {
        let to = queue.clone();
        self.views.namespaces.on_change(move |change| {
            if let Some(namespace) = &change.new {
                to.add(Key::of(&**namespace));
            }
        });
        let to = queue.clone();
        self.views.service_accounts.on_change(move |change| {
            if let (Some(gone), None) = (&change.old, &change.new) {
                changed(&to, &Key::of(&**gone), ACCOUNT);
            }
        });
        let to = queue.clone();
        self.views.config_maps.on_change(move |change| {
            if let Some(map) = change.latest() {
                changed(&to, &Key::of(&**map), AUTHORITY);
            }
        });
    }

    async fn reconcile(&self, key: &Key) -> Result<Again> {
        if !self.views.namespaces.get(key).is_some_and(|namespace| is_active(&namespace)) {
            return Ok(None);
        }
        let done = async {
            // In this order: a pod comes as soon as there is an account, and needs the other.
            self.authority(&key.name).await?;
            self.account(&key.name).await
        };
        match done.await {
            Err(error) if error.is_refused_by_namespace() => Ok(None),
            done => done.map(|()| None),
        }
    }

    async fn account(&self, namespace: &str) -> Result<()> {
        if self.views.service_accounts.get(&Key::new(namespace, ACCOUNT)).is_some() {
            return Ok(());
        }
        let account: ServiceAccount = read(json!({ "metadata": { "namespace": namespace, "name": ACCOUNT } }))?;
        match write::create(&self.client, &self.views.service_accounts, &account).await {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    async fn authority(&self, namespace: &str) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let Some(mut there) = maps.get_opt(AUTHORITY).await? else {
            let metadata = json!({ "name": AUTHORITY, "annotations": { "kubernetes.io/description": DESCRIPTION } });
            let map: ConfigMap = read(json!({ "metadata": metadata, "data": { "ca.crt": self.authority } }))?;
            return match maps.create(&params, &map).await.map_err(Error::from) {
                Err(error) if !error.is_conflict() => Err(error),
                _ => Ok(()),
            };
        };
        let wanted = [("ca.crt".to_owned(), self.authority.clone())].into();
        if there.data.as_ref() != Some(&wanted) {
            there.data = Some(wanted);
            maps.replace(AUTHORITY, &params, &there).await?;
        }
        Ok(())
    }
}

/// An object of a namespace changed: if it is the one of this name, the namespace is looked at.
fn changed(queue: &Queue<Key>, object: &Key, name: &str) {
    if object.name == name {
        queue.add(Key::new("", &object.namespace));
    }
}

fn is_active(namespace: &Namespace) -> bool {
    let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
    phase != Some("Terminating") && namespace.metadata.deletion_timestamp.is_none()
}

fn read<K: serde::de::DeserializeOwned>(object: serde_json::Value) -> Result<K> {
    serde_json::from_value(object).map_err(|error| Error::Object(error.to_string()))
}

#[cfg(test)]
mod tests;
