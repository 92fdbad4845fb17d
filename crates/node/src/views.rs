//! What everybody sees of the cluster: one [`View`] for each kind that somebody acts on.
//!
//! Of ConfigMaps and Secrets only the metadata is kept: a node reads those that its pods name, and nobody holds all Secrets of
//! the cluster in memory.

use std::{fmt::Debug, future::Future, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{ConfigMap, Namespace, Node, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Client, Resource, core::PartialObjectMeta};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::view::View;

/// The kinds.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Views {
    pub namespaces: Arc<View<Namespace>>,
    pub nodes: Arc<View<Node>>,
    pub pods: Arc<View<Pod>>,
    pub services: Arc<View<Service>>,
    pub service_accounts: Arc<View<ServiceAccount>>,
    pub config_maps: Arc<View<PartialObjectMeta<ConfigMap>>>,
    pub secrets: Arc<View<PartialObjectMeta<Secret>>>,
    pub claims: Arc<View<PersistentVolumeClaim>>,
    pub endpoint_slices: Arc<View<EndpointSlice>>,
    pub deployments: Arc<View<Deployment>>,
    pub replica_sets: Arc<View<ReplicaSet>>,
    pub stateful_sets: Arc<View<StatefulSet>>,
    pub daemon_sets: Arc<View<DaemonSet>>,
    pub revisions: Arc<View<ControllerRevision>>,
    pub autoscalers: Arc<View<HorizontalPodAutoscaler>>,
}

impl Views {
    /// Follows the API server with all of them; returns when everything that is there is seen.
    pub async fn follow(&self, client: &Client, tasks: &mut JoinSet<()>) {
        let mut follow = Follow { client, tasks };
        follow.whole(&self.namespaces);
        follow.whole(&self.nodes);
        follow.whole(&self.pods);
        follow.whole(&self.services);
        follow.whole(&self.service_accounts);
        follow.metadata(&self.config_maps);
        follow.metadata(&self.secrets);
        follow.whole(&self.claims);
        follow.whole(&self.endpoint_slices);
        follow.whole(&self.deployments);
        follow.whole(&self.replica_sets);
        follow.whole(&self.stateful_sets);
        follow.whole(&self.daemon_sets);
        follow.whole(&self.revisions);
        follow.whole(&self.autoscalers);
        self.synced().await;
    }

    async fn synced(&self) {
        self.namespaces.synced().await;
        self.nodes.synced().await;
        self.pods.synced().await;
        self.services.synced().await;
        self.service_accounts.synced().await;
        self.config_maps.synced().await;
        self.secrets.synced().await;
        self.claims.synced().await;
        self.endpoint_slices.synced().await;
        self.deployments.synced().await;
        self.replica_sets.synced().await;
        self.stateful_sets.synced().await;
        self.daemon_sets.synced().await;
        self.revisions.synced().await;
        self.autoscalers.synced().await;
    }
}

struct Follow<'a> {
    client: &'a Client,
    tasks: &'a mut JoinSet<()>,
}

impl Follow<'_> {
    fn whole<K>(&mut self, view: &Arc<View<K>>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let api = Api::all(self.client.clone());
        self.spawn(Arc::clone(view).follow(api));
    }

    fn metadata<K>(&mut self, view: &Arc<View<PartialObjectMeta<K>>>)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    {
        let api = Api::all(self.client.clone());
        self.spawn(Arc::clone(view).follow(api));
    }

    fn spawn(&mut self, follow: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(follow);
    }
}
