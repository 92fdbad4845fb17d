//! The shared informers: one [`SharedInformer`] for each kind that a component uses.
//!
//! Of ConfigMaps and Secrets only the metadata is cached: a node reads those that its pods reference, and no
//! component holds all Secrets of the cluster in memory.

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

use crate::informer::SharedInformer;

#[derive(Clone, Debug, Default)]
pub struct InformerSet {
    pub namespaces: Arc<SharedInformer<Namespace>>,
    pub nodes: Arc<SharedInformer<Node>>,
    pub pods: Arc<SharedInformer<Pod>>,
    pub services: Arc<SharedInformer<Service>>,
    pub service_accounts: Arc<SharedInformer<ServiceAccount>>,
    pub config_maps: Arc<SharedInformer<PartialObjectMeta<ConfigMap>>>,
    pub secrets: Arc<SharedInformer<PartialObjectMeta<Secret>>>,
    pub claims: Arc<SharedInformer<PersistentVolumeClaim>>,
    pub endpoint_slices: Arc<SharedInformer<EndpointSlice>>,
    pub deployments: Arc<SharedInformer<Deployment>>,
    pub replica_sets: Arc<SharedInformer<ReplicaSet>>,
    pub stateful_sets: Arc<SharedInformer<StatefulSet>>,
    pub daemon_sets: Arc<SharedInformer<DaemonSet>>,
    pub revisions: Arc<SharedInformer<ControllerRevision>>,
    pub autoscalers: Arc<SharedInformer<HorizontalPodAutoscaler>>,
}

impl InformerSet {
    /// Starts all watches; returns after all initial lists.
    pub async fn start_all(&self, client: &Client, tasks: &mut JoinSet<()>) {
        let mut follow = InformerStarter { client, tasks };
        follow.start_full(&self.namespaces);
        follow.start_full(&self.nodes);
        follow.start_full(&self.pods);
        follow.start_full(&self.services);
        follow.start_full(&self.service_accounts);
        follow.start_metadata(&self.config_maps);
        follow.start_metadata(&self.secrets);
        follow.start_full(&self.claims);
        follow.start_full(&self.endpoint_slices);
        follow.start_full(&self.deployments);
        follow.start_full(&self.replica_sets);
        follow.start_full(&self.stateful_sets);
        follow.start_full(&self.daemon_sets);
        follow.start_full(&self.revisions);
        follow.start_full(&self.autoscalers);
        self.wait_until_synced().await;
    }

    async fn wait_until_synced(&self) {
        self.namespaces.wait_until_synced().await;
        self.nodes.wait_until_synced().await;
        self.pods.wait_until_synced().await;
        self.services.wait_until_synced().await;
        self.service_accounts.wait_until_synced().await;
        self.config_maps.wait_until_synced().await;
        self.secrets.wait_until_synced().await;
        self.claims.wait_until_synced().await;
        self.endpoint_slices.wait_until_synced().await;
        self.deployments.wait_until_synced().await;
        self.replica_sets.wait_until_synced().await;
        self.stateful_sets.wait_until_synced().await;
        self.daemon_sets.wait_until_synced().await;
        self.revisions.wait_until_synced().await;
        self.autoscalers.wait_until_synced().await;
    }
}

struct InformerStarter<'a> {
    client: &'a Client,
    tasks: &'a mut JoinSet<()>,
}

impl InformerStarter<'_> {
    fn start_full<K>(&mut self, view: &Arc<SharedInformer<K>>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let api = Api::all(self.client.clone());
        self.spawn(Arc::clone(view).list_and_watch(api));
    }

    fn start_metadata<K>(&mut self, view: &Arc<SharedInformer<PartialObjectMeta<K>>>)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    {
        let api = Api::all(self.client.clone());
        self.spawn(Arc::clone(view).list_and_watch(api));
    }

    fn spawn(&mut self, follow: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(follow);
    }
}
