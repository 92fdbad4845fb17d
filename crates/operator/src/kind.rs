//! The kinds of objects that the operator makes.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{ConfigMap, Secret, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};

/// A kind, in the order in which objects are applied: first what others refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Who the collectors are.
    ServiceAccount,
    /// What they may do.
    Role,
    /// That they may.
    RoleBinding,
    /// What they may do in the whole cluster.
    ClusterRole,
    /// That they may.
    ClusterRoleBinding,
    /// Values that nobody else may see.
    Secret,
    /// Documents and locks.
    ConfigMap,
    /// Addresses.
    Service,
    /// Who may connect.
    NetworkPolicy,
    /// The gateway.
    Deployment,
    /// The sticky tier.
    StatefulSet,
    /// How many may be taken away at once.
    PodDisruptionBudget,
    /// How many there are.
    HorizontalPodAutoscaler,
    /// Prometheus' operator's way to scrape.
    PodMonitor,
}

impl Kind {
    /// All but those that a cluster may lack.
    pub const ALWAYS: [Self; 13] = [
        Self::ServiceAccount,
        Self::Role,
        Self::RoleBinding,
        Self::ClusterRole,
        Self::ClusterRoleBinding,
        Self::Secret,
        Self::ConfigMap,
        Self::Service,
        Self::NetworkPolicy,
        Self::Deployment,
        Self::StatefulSet,
        Self::PodDisruptionBudget,
        Self::HorizontalPodAutoscaler,
    ];

    /// Whether it says who collectors are and what they may do.
    pub fn is_right(self) -> bool {
        matches!(
            self,
            Self::ServiceAccount | Self::Role | Self::RoleBinding | Self::ClusterRole | Self::ClusterRoleBinding
        )
    }

    /// How the API server knows it.
    pub fn resource(self) -> ApiResource {
        match self {
            Self::ServiceAccount => ApiResource::erase::<ServiceAccount>(&()),
            Self::Role => ApiResource::erase::<Role>(&()),
            Self::RoleBinding => ApiResource::erase::<RoleBinding>(&()),
            Self::ClusterRole => ApiResource::erase::<ClusterRole>(&()),
            Self::ClusterRoleBinding => ApiResource::erase::<ClusterRoleBinding>(&()),
            Self::Secret => ApiResource::erase::<Secret>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Service => ApiResource::erase::<Service>(&()),
            Self::NetworkPolicy => ApiResource::erase::<NetworkPolicy>(&()),
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::StatefulSet => ApiResource::erase::<StatefulSet>(&()),
            Self::PodDisruptionBudget => ApiResource::erase::<PodDisruptionBudget>(&()),
            Self::HorizontalPodAutoscaler => ApiResource::erase::<HorizontalPodAutoscaler>(&()),
            Self::PodMonitor => {
                let kind = GroupVersionKind::gvk("monitoring.coreos.com", "v1", "PodMonitor");
                ApiResource::from_gvk_with_plural(&kind, "podmonitors")
            }
        }
    }

    /// Whether its objects are in no namespace.
    pub fn is_of_cluster(self) -> bool {
        matches!(self, Self::ClusterRole | Self::ClusterRoleBinding)
    }

    /// Whether what becomes of an object is of interest, and not only what is asked for.
    pub fn has_status(self) -> bool {
        matches!(self, Self::Deployment | Self::StatefulSet)
    }

    /// Its objects, those of a namespace if it has any.
    pub fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let (client, resource) = (client.clone(), self.resource());
        if self.is_of_cluster() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, namespace, &resource)
        }
    }
}
