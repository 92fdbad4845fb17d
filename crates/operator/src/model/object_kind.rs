//! The kinds of objects that the operator makes.

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
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

/// A kind. The order is that of applying: objects come after those that they refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    ServiceAccount,
    Role,
    RoleBinding,
    /// Rights in the whole cluster.
    ClusterRole,
    ClusterRoleBinding,
    /// Values that only collectors may see.
    Secret,
    ConfigMap,
    Service,
    NetworkPolicy,
    Deployment,
    StatefulSet,
    DaemonSet,
    /// How many pods may be evicted at once.
    PodDisruptionBudget,
    HorizontalPodAutoscaler,
    /// Scraping by the Prometheus Operator.
    PodMonitor,
}

impl ObjectKind {
    /// The kinds of the operator's namespace and of the cluster, but those that a cluster may lack.
    pub const REQUIRED: [Self; 13] = [
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

    /// The kinds of the agents' namespace, but those that a cluster may lack.
    pub const AGENT_KINDS: [Self; 6] =
        [Self::ServiceAccount, Self::Secret, Self::ConfigMap, Self::Service, Self::NetworkPolicy, Self::DaemonSet];

    /// Whether a cluster may lack the kind.
    pub fn is_optional(self) -> bool {
        self == Self::PodMonitor
    }

    /// Whether the kind is an identity of collectors, or their rights.
    pub fn is_rbac(self) -> bool {
        matches!(
            self,
            Self::ServiceAccount | Self::Role | Self::RoleBinding | Self::ClusterRole | Self::ClusterRoleBinding
        )
    }

    /// The API resource of the kind.
    pub fn api_resource(self) -> ApiResource {
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
            Self::DaemonSet => ApiResource::erase::<DaemonSet>(&()),
            Self::PodDisruptionBudget => ApiResource::erase::<PodDisruptionBudget>(&()),
            Self::HorizontalPodAutoscaler => ApiResource::erase::<HorizontalPodAutoscaler>(&()),
            Self::PodMonitor => {
                let kind = GroupVersionKind::gvk("monitoring.coreos.com", "v1", "PodMonitor");
                ApiResource::from_gvk_with_plural(&kind, "podmonitors")
            }
        }
    }

    /// Whether objects of the kind are cluster-scoped.
    pub fn is_cluster_scoped(self) -> bool {
        matches!(self, Self::ClusterRole | Self::ClusterRoleBinding)
    }

    /// Whether the status of objects is read, and not only their spec.
    pub fn has_status(self) -> bool {
        matches!(self, Self::Deployment | Self::StatefulSet | Self::DaemonSet)
    }

    /// The API of the kind, in this namespace unless the kind is cluster-scoped.
    pub fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let client = client.clone();
        let resource = self.api_resource();
        if self.is_cluster_scoped() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, namespace, &resource)
        }
    }
}
