//! The default objects of every namespace: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt`
//! by which pods verify the API server.
//!
//! *Guaranteed*: both exist soon after the namespace does, are created again after a deletion, and a changed
//! ConfigMap is restored. A namespace that is being deleted gets neither.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use tokio::task::JoinSet;

use super::{FIELD_MANAGER, write_through};
use crate::{
    error::{ClusterError, Result},
    informers::InformerSet,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

const CONTROLLER_NAME: &str = "serviceaccount-controller";
const MAX_CONCURRENT_RECONCILES: usize = 8;
/// The ServiceAccount of a pod that names none.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";
/// The ConfigMap with the certificate authority of the API server.
pub const ROOT_CA_CONFIG_MAP: &str = "kube-root-ca.crt";
/// kube-controller-manager's description, in an annotation.
const ROOT_CA_DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as \
    the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Starts the controller. `authority` is PEM.
pub fn start(client: &Client, views: &InformerSet, authority: String, tasks: &mut JoinSet<()>) {
    let accounts =
        Arc::new(NamespaceDefaultsController { client: client.clone(), informers: views.clone(), authority });
    let queue = WorkQueue::default();
    accounts.listen(&queue);
    tasks.spawn(queue.run_workers(CONTROLLER_NAME, MAX_CONCURRENT_RECONCILES, move |key| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.reconcile(&key).await }
    }));
}

struct NamespaceDefaultsController {
    client: Client,
    informers: InformerSet,
    authority: String,
}

impl NamespaceDefaultsController {
    /// The keys are those of namespaces.
    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let to = queue.clone();
        self.informers.namespaces.on_change(move |change| {
            if let Some(namespace) = &change.new {
                to.add(NamespacedKey::from_object(&**namespace));
            }
        });
        let to = queue.clone();
        self.informers.service_accounts.on_change(move |change| {
            if let (Some(gone), None) = (&change.old, &change.new) {
                requeue_namespace(&to, &NamespacedKey::from_object(&**gone), DEFAULT_SERVICE_ACCOUNT);
            }
        });
        let to = queue.clone();
        self.informers.config_maps.on_change(move |change| {
            if let Some(map) = change.latest() {
                requeue_namespace(&to, &NamespacedKey::from_object(&**map), ROOT_CA_CONFIG_MAP);
            }
        });
    }

    async fn reconcile(&self, key: &NamespacedKey) -> Result<RequeueAfter> {
        if !self.informers.namespaces.get(key).is_some_and(|namespace| is_active(&namespace)) {
            return Ok(None);
        }
        let done = async {
            // In this order: pods can be created once the account exists, and they need the ConfigMap.
            self.ensure_root_ca(&key.name).await?;
            self.ensure_service_account(&key.name).await
        };
        match done.await {
            Err(error) if error.is_refused_by_namespace() => Ok(None),
            done => done.map(|()| None),
        }
    }

    async fn ensure_service_account(&self, namespace: &str) -> Result<()> {
        if self.informers.service_accounts.get(&NamespacedKey::new(namespace, DEFAULT_SERVICE_ACCOUNT)).is_some() {
            return Ok(());
        }
        let account: ServiceAccount =
            parse_object(json!({ "metadata": { "namespace": namespace, "name": DEFAULT_SERVICE_ACCOUNT } }))?;
        match write_through::create(&self.client, &self.informers.service_accounts, &account).await {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    async fn ensure_root_ca(&self, namespace: &str) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let Some(mut there) = maps.get_opt(ROOT_CA_CONFIG_MAP).await? else {
            let metadata = json!({ "name": ROOT_CA_CONFIG_MAP, "annotations": { "kubernetes.io/description": ROOT_CA_DESCRIPTION } });
            let map: ConfigMap = parse_object(json!({ "metadata": metadata, "data": { "ca.crt": self.authority } }))?;
            return match maps.create(&params, &map).await.map_err(ClusterError::from) {
                Err(error) if !error.is_conflict() => Err(error),
                _ => Ok(()),
            };
        };
        let wanted = [("ca.crt".to_owned(), self.authority.clone())].into();
        if there.data.as_ref() != Some(&wanted) {
            there.data = Some(wanted);
            maps.replace(ROOT_CA_CONFIG_MAP, &params, &there).await?;
        }
        Ok(())
    }
}

/// Queues the namespace of a changed object of this name.
fn requeue_namespace(queue: &WorkQueue<NamespacedKey>, object: &NamespacedKey, name: &str) {
    if object.name == name {
        queue.add(NamespacedKey::new("", &object.namespace));
    }
}

fn is_active(namespace: &Namespace) -> bool {
    let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
    phase != Some("Terminating") && namespace.metadata.deletion_timestamp.is_none()
}

fn parse_object<K: serde::de::DeserializeOwned>(object: serde_json::Value) -> Result<K> {
    serde_json::from_value(object).map_err(|error| ClusterError::Object(error.to_string()))
}

#[cfg(test)]
mod tests;
