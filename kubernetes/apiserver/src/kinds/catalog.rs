//! The table of built-in resources: group and version, names, subresources, and rules.
//!
//! Names, verbs, short names, categories and subresources are those of kube-apiserver 1.35; some subresources
//! are only listed for discovery (`exec`, `proxy`). The singular is the kind in lower case.

use std::sync::Arc;

use super::{
    ServiceAllocator, autoscaling, batch, certificates, config, daemonset, deployment, event, namespace, network,
    network::LoopbackEndpoints, node, pod, quota, rbac, replicaset, runtime_class, service,
    simple_strategy::SimpleStrategy, small_strategies, statefulset, storage, webhook,
};
use crate::{
    api::GroupVersion,
    crd::DefinitionStrategy,
    registry::{Catalog, DefaultStrategy, ServedResource, Strategy, Subresource},
    schema::{SchemaNode, builtin},
};

const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];
const CREATE: &[&str] = &["create"];
const STREAM: &[&str] = &["create", "get"];

/// Creates the rules of a kind.
type StrategyFactory = fn(&Arc<ServiceAllocator>) -> Arc<dyn Strategy>;

/// A row of the table.
struct BuiltinResource {
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    verbs: &'static [&'static str],
    sub: &'static [SubresourceEntry],
    select: &'static [&'static str],
    strategy: StrategyFactory,
}

/// A subresource: its name, its kind (empty: the resource's own), the group and version of that kind, and its
/// verbs.
type SubresourceEntry = (&'static str, &'static str, &'static str, &'static [&'static str]);

const STATUS: SubresourceEntry = ("status", "", "", READ_WRITE);
const SCALE: SubresourceEntry = ("scale", "Scale", "autoscaling/v1", READ_WRITE);

/// A namespaced or a cluster-scoped resource.
const fn namespaced_entry(plural: &'static str, kind: &'static str, rules: StrategyFactory) -> BuiltinResource {
    BuiltinResource {
        plural,
        kind,
        namespaced: true,
        short: &[],
        categories: &[],
        verbs: ALL_VERBS,
        sub: &[],
        select: &[],
        strategy: rules,
    }
}

const fn cluster_entry(plural: &'static str, kind: &'static str, rules: StrategyFactory) -> BuiltinResource {
    BuiltinResource { namespaced: false, ..namespaced_entry(plural, kind, rules) }
}

impl BuiltinResource {
    const fn short(self, short: &'static [&'static str]) -> Self {
        Self { short, ..self }
    }
    const fn in_category_all(self) -> Self {
        Self { categories: &["all"], ..self }
    }
    const fn in_category_api_extensions(self) -> Self {
        Self { categories: &["api-extensions"], ..self }
    }
    const fn verbs(self, verbs: &'static [&'static str]) -> Self {
        Self { verbs, ..self }
    }
    const fn sub(self, sub: &'static [SubresourceEntry]) -> Self {
        Self { sub, ..self }
    }
    const fn select(self, select: &'static [&'static str]) -> Self {
        Self { select, ..self }
    }
}

fn default_strategy(_: &Arc<ServiceAllocator>) -> Arc<dyn Strategy> {
    Arc::new(DefaultStrategy)
}

fn endpoints_strategy(services: &Arc<ServiceAllocator>) -> Arc<dyn Strategy> {
    Arc::new(network::EndpointsStrategy(LoopbackEndpoints::for_services(services)))
}

fn endpoint_slice_strategy(services: &Arc<ServiceAllocator>) -> Arc<dyn Strategy> {
    Arc::new(network::EndpointSliceStrategy(LoopbackEndpoints::for_services(services)))
}

#[rustfmt::skip] // one resource per line, so that it reads as a table
const TABLE: &[(&str, &[BuiltinResource])] = &[
    ("v1", &[
        namespaced_entry("bindings", "Binding", default_strategy).verbs(CREATE),
        cluster_entry("componentstatuses", "ComponentStatus", default_strategy).short(&["cs"]).verbs(&["get", "list"]),
        namespaced_entry("configmaps", "ConfigMap", |_| Arc::new(config::ConfigMapStrategy)).short(&["cm"]),
        namespaced_entry("endpoints", "Endpoints", endpoints_strategy).short(&["ep"]),
        namespaced_entry("events", "Event", |_| Arc::new(event::CoreEventStrategy)).short(&["ev"]).select(&[
            "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
            "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"]),
        namespaced_entry("limitranges", "LimitRange", |_| Arc::new(small_strategies::LimitRangeStrategy)).short(&["limits"]),
        cluster_entry("namespaces", "Namespace", |_| Arc::new(namespace::NamespaceStrategy)).short(&["ns"]).select(&["status.phase"])
            .verbs(&["create", "delete", "get", "list", "patch", "update", "watch"])
            .sub(&[("finalize", "", "", &["update"]), STATUS]),
        cluster_entry("nodes", "Node", |_| Arc::new(node::NodeStrategy)).short(&["no"]).select(&["spec.unschedulable"])
            .sub(&[("proxy", "NodeProxyOptions", "", PROXY), STATUS]),
        namespaced_entry("persistentvolumeclaims", "PersistentVolumeClaim", |_| Arc::new(storage::VolumeClaimStrategy)).short(&["pvc"]).sub(&[STATUS]),
        cluster_entry("persistentvolumes", "PersistentVolume", |_| Arc::new(storage::PersistentVolumeStrategy)).short(&["pv"]).sub(&[STATUS]),
        namespaced_entry("pods", "Pod", |_| Arc::new(pod::Pod)).short(&["po"]).in_category_all()
            .select(&["spec.hostNetwork", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                      "status.nominatedNodeName", "status.phase", "status.podIP", "status.podIPs"])
            .sub(&[("attach", "PodAttachOptions", "", STREAM), ("binding", "Binding", "", CREATE),
                   ("ephemeralcontainers", "", "", READ_WRITE), ("eviction", "Eviction", "policy/v1", CREATE),
                   ("exec", "PodExecOptions", "", STREAM), ("log", "", "", &["get"]),
                   ("portforward", "PodPortForwardOptions", "", STREAM), ("proxy", "PodProxyOptions", "", PROXY),
                   ("resize", "", "", READ_WRITE), STATUS]),
        namespaced_entry("podtemplates", "PodTemplate", |_| Arc::new(small_strategies::PodTemplateStrategy)),
        namespaced_entry("replicationcontrollers", "ReplicationController", |_| Arc::new(replicaset::ReplicationControllerStrategy)).short(&["rc"]).in_category_all().sub(&[SCALE, STATUS])
            .select(&["status.replicas"]),
        namespaced_entry("resourcequotas", "ResourceQuota", |_| Arc::new(quota::ResourceQuotaStrategy)).short(&["quota"]).sub(&[STATUS]),
        namespaced_entry("secrets", "Secret", |_| Arc::new(config::SecretStrategy)).select(&["type"]),
        namespaced_entry("serviceaccounts", "ServiceAccount", default_strategy).short(&["sa"])
            .sub(&[("token", "TokenRequest", "authentication.k8s.io/v1", CREATE)]),
        namespaced_entry("services", "Service", |addresses| Arc::new(service::ServiceStrategy::new(Arc::clone(addresses)))).short(&["svc"]).in_category_all().select(&["spec.clusterIP", "spec.type"])
            .sub(&[("proxy", "ServiceProxyOptions", "", PROXY), STATUS]),
    ]),
    ("admissionregistration.k8s.io/v1", &[
        cluster_entry("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", |_| Arc::new(webhook::WebhookConfigurationStrategy { mutating: true })).in_category_api_extensions(),
        cluster_entry("validatingadmissionpolicies", "ValidatingAdmissionPolicy", |_| Arc::new(webhook::AdmissionPolicyStrategy)).in_category_api_extensions().sub(&[STATUS]),
        cluster_entry("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", |_| Arc::new(webhook::AdmissionPolicyBindingStrategy)).in_category_api_extensions(),
        cluster_entry("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", |_| Arc::new(webhook::WebhookConfigurationStrategy { mutating: false })).in_category_api_extensions(),
    ]),
    ("apiextensions.k8s.io/v1", &[
        cluster_entry("customresourcedefinitions", "CustomResourceDefinition", |_| Arc::new(DefinitionStrategy)).short(&["crd", "crds"]).in_category_api_extensions().sub(&[STATUS]),
    ]),
    ("apiregistration.k8s.io/v1", &[
        cluster_entry("apiservices", "APIService", |_| SimpleStrategy::new().status().boxed()).in_category_api_extensions().sub(&[STATUS]),
    ]),
    ("apps/v1", &[
        namespaced_entry("controllerrevisions", "ControllerRevision", |_| Arc::new(small_strategies::ControllerRevisionStrategy)),
        namespaced_entry("daemonsets", "DaemonSet", |_| Arc::new(daemonset::DaemonSetStrategy)).short(&["ds"]).in_category_all().sub(&[STATUS]),
        namespaced_entry("deployments", "Deployment", |_| Arc::new(deployment::DeploymentStrategy)).short(&["deploy"]).in_category_all().sub(&[SCALE, STATUS]),
        namespaced_entry("replicasets", "ReplicaSet", |_| Arc::new(replicaset::ReplicaSetStrategy)).short(&["rs"]).in_category_all().sub(&[SCALE, STATUS]).select(&["status.replicas"]),
        namespaced_entry("statefulsets", "StatefulSet", |_| Arc::new(statefulset::StatefulSetStrategy)).short(&["sts"]).in_category_all().sub(&[SCALE, STATUS]),
    ]),
    ("authentication.k8s.io/v1", &[
        cluster_entry("selfsubjectreviews", "SelfSubjectReview", default_strategy).verbs(CREATE),
        cluster_entry("tokenreviews", "TokenReview", default_strategy).verbs(CREATE),
    ]),
    ("authorization.k8s.io/v1", &[
        namespaced_entry("localsubjectaccessreviews", "LocalSubjectAccessReview", default_strategy).verbs(CREATE),
        cluster_entry("selfsubjectaccessreviews", "SelfSubjectAccessReview", default_strategy).verbs(CREATE),
        cluster_entry("selfsubjectrulesreviews", "SelfSubjectRulesReview", default_strategy).verbs(CREATE),
        cluster_entry("subjectaccessreviews", "SubjectAccessReview", default_strategy).verbs(CREATE),
    ]),
    ("autoscaling/v1", &[
        namespaced_entry("horizontalpodautoscalers", "HorizontalPodAutoscaler", |_| Arc::new(autoscaling::AutoscalerV1Strategy)).short(&["hpa"]).in_category_all().sub(&[STATUS]),
    ]),
    ("autoscaling/v2", &[
        namespaced_entry("horizontalpodautoscalers", "HorizontalPodAutoscaler", |_| Arc::new(autoscaling::AutoscalerStrategy)).short(&["hpa"]).in_category_all().sub(&[STATUS]),
    ]),
    ("batch/v1", &[
        namespaced_entry("cronjobs", "CronJob", |_| Arc::new(batch::CronJobStrategy)).short(&["cj"]).in_category_all().sub(&[STATUS]),
        namespaced_entry("jobs", "Job", |_| Arc::new(batch::JobStrategy)).in_category_all().sub(&[STATUS]).select(&["status.successful"]),
    ]),
    ("certificates.k8s.io/v1", &[
        cluster_entry("certificatesigningrequests", "CertificateSigningRequest", |_| Arc::new(certificates::SigningRequestStrategy)).short(&["csr"])
            .select(&["spec.signerName"]).sub(&[("approval", "", "", READ_WRITE), STATUS]),
    ]),
    ("coordination.k8s.io/v1", &[
        namespaced_entry("leases", "Lease", |_| Arc::new(small_strategies::LeaseStrategy)),
    ]),
    ("discovery.k8s.io/v1", &[
        namespaced_entry("endpointslices", "EndpointSlice", endpoint_slice_strategy),
    ]),
    ("events.k8s.io/v1", &[
        namespaced_entry("events", "Event", |_| Arc::new(event::EventsGroupStrategy)).short(&["ev"]).select(&[
            "reason", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
            "regarding.resourceVersion", "regarding.fieldPath", "reportingController", "type"]),
    ]),
    ("flowcontrol.apiserver.k8s.io/v1", &[
        cluster_entry("flowschemas", "FlowSchema", |_| SimpleStrategy::new().status().generation().boxed()).sub(&[STATUS]),
        cluster_entry("prioritylevelconfigurations", "PriorityLevelConfiguration", |_| SimpleStrategy::new().status().generation().boxed()).sub(&[STATUS]),
    ]),
    ("networking.k8s.io/v1", &[
        cluster_entry("ingressclasses", "IngressClass", |_| Arc::new(network::IngressClassStrategy)),
        namespaced_entry("ingresses", "Ingress", |_| Arc::new(network::IngressStrategy)).short(&["ing"]).sub(&[STATUS]),
        cluster_entry("ipaddresses", "IPAddress", default_strategy).short(&["ip"]).select(&["spec.parentRef.group"]),
        namespaced_entry("networkpolicies", "NetworkPolicy", |_| Arc::new(network::NetworkPolicyStrategy)).short(&["netpol"]),
        cluster_entry("servicecidrs", "ServiceCIDR", |_| SimpleStrategy::new().status().boxed()).sub(&[STATUS]),
    ]),
    ("node.k8s.io/v1", &[
        cluster_entry("runtimeclasses", "RuntimeClass", |_| Arc::new(runtime_class::RuntimeClassStrategy)),
    ]),
    ("policy/v1", &[
        namespaced_entry("poddisruptionbudgets", "PodDisruptionBudget", |_| Arc::new(small_strategies::DisruptionBudgetStrategy)).short(&["pdb"]).sub(&[STATUS]),
    ]),
    ("rbac.authorization.k8s.io/v1", &[
        cluster_entry("clusterrolebindings", "ClusterRoleBinding", |_| Arc::new(rbac::RoleBindingStrategy { namespaced: false })),
        cluster_entry("clusterroles", "ClusterRole", |_| Arc::new(rbac::RoleStrategy { namespaced: false })),
        namespaced_entry("rolebindings", "RoleBinding", |_| Arc::new(rbac::RoleBindingStrategy { namespaced: true })),
        namespaced_entry("roles", "Role", |_| Arc::new(rbac::RoleStrategy { namespaced: true })),
    ]),
    ("resource.k8s.io/v1", &[
        cluster_entry("deviceclasses", "DeviceClass", |_| SimpleStrategy::new().generation().boxed()),
        namespaced_entry("resourceclaims", "ResourceClaim", |_| SimpleStrategy::new().status().boxed()).sub(&[STATUS]),
        namespaced_entry("resourceclaimtemplates", "ResourceClaimTemplate", default_strategy),
        cluster_entry("resourceslices", "ResourceSlice", |_| SimpleStrategy::new().generation().boxed()).select(&["spec.driver", "spec.nodeName"]),
    ]),
    ("scheduling.k8s.io/v1", &[
        cluster_entry("priorityclasses", "PriorityClass", |_| Arc::new(small_strategies::PriorityClassStrategy)).short(&["pc"]),
    ]),
    ("storage.k8s.io/v1", &[
        cluster_entry("csidrivers", "CSIDriver", |_| SimpleStrategy::new().conditional().boxed()),
        cluster_entry("csinodes", "CSINode", |_| SimpleStrategy::new().conditional().boxed()),
        namespaced_entry("csistoragecapacities", "CSIStorageCapacity", |_| SimpleStrategy::new().conditional().boxed()),
        cluster_entry("storageclasses", "StorageClass", |_| Arc::new(small_strategies::StorageClassStrategy)).short(&["sc"]),
        cluster_entry("volumeattachments", "VolumeAttachment", |_| SimpleStrategy::new().status().conditional().boxed()).sub(&[STATUS]),
        cluster_entry("volumeattributesclasses", "VolumeAttributesClass", default_strategy).short(&["vac"]),
    ]),
];

pub(super) fn build_catalog(addresses: &Arc<ServiceAllocator>) -> Catalog {
    let mut catalog = Catalog::default();
    for (group_version, rows) in TABLE {
        let Some(gv) = GroupVersion::parse(group_version) else { continue };
        for row in *rows {
            catalog.insert(Arc::new(resource(&gv, row, addresses)));
        }
    }
    catalog
}

fn resource(gv: &GroupVersion, row: &BuiltinResource, addresses: &Arc<ServiceAllocator>) -> ServedResource {
    let strategy = (row.strategy)(addresses);
    // The storage version of CRDs is the previous one.
    let of_definitions = (row.plural == "customresourcedefinitions").then(|| GroupVersion::new(&gv.group, "v1beta1"));
    let stored = strategy.storage_version().or(of_definitions).unwrap_or_else(|| gv.clone());
    let kept = row.verbs.contains(&"watch");
    let texts = |list: &[&str]| list.iter().map(|text| Arc::from(*text)).collect();
    ServedResource {
        gv: gv.clone(),
        plural: row.plural.into(),
        singular: row.kind.to_lowercase().into(),
        kind: row.kind.into(),
        list_kind: format!("{}List", row.kind).into(),
        namespaced: row.namespaced,
        short_names: texts(row.short),
        categories: texts(row.categories),
        verbs: row.verbs.to_vec(),
        subresources: row.sub.iter().map(|sub| subresource(row.kind, sub)).collect(),
        schema: builtin::schema_for_kind(gv, row.kind).map_or_else(SchemaNode::default, SchemaNode::Builtin),
        strategy,
        custom: None,
        selectable: texts(row.select),
        storage_version_hash: if kept { super::storage_version_hash(&stored, row.kind) } else { "".into() },
    }
}

fn subresource(own: &str, (name, kind, gv, verbs): &SubresourceEntry) -> Subresource {
    let kind = if kind.is_empty() { own } else { kind };
    Subresource { name: (*name).into(), kind: kind.into(), gv: GroupVersion::parse(gv), verbs: verbs.to_vec() }
}
