//! The built-in resources, as a table: where each is served, its names and subresources, and its rules.
//!
//! Names, verbs, short names, categories and subresources are those of kube-apiserver 1.35; some subresources are listed because
//! discovery lists them (`exec`, `proxy`), whoever serves them. The singular is the kind in lower case.

use std::sync::Arc;

use super::{
    Addresses, autoscaling, batch, certificates, config, daemonset, deployment, event, namespace, network, node, pod,
    rbac, replicaset, rules::Simple, service, small, statefulset, storage, webhook,
};
use crate::{
    api::GroupVersion,
    crd::DefinitionStrategy,
    registry::{Catalog, Plain, Resource, Strategy, Subresource},
    schema::{Node, builtin},
};

const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];
const CREATE: &[&str] = &["create"];
const STREAM: &[&str] = &["create", "get"];

/// Makes the rules of a kind.
type Rules = fn(&Arc<Addresses>) -> Arc<dyn Strategy>;

/// A line of the table.
struct Row {
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    verbs: &'static [&'static str],
    sub: &'static [Sub],
    select: &'static [&'static str],
    rules: Rules,
}

/// A subresource: its name, its kind (empty: the resource's own), where that kind is from, and its verbs.
type Sub = (&'static str, &'static str, &'static str, &'static [&'static str]);

const STATUS: Sub = ("status", "", "", READ_WRITE);
const SCALE: Sub = ("scale", "Scale", "autoscaling/v1", READ_WRITE);

/// A resource in namespaces, or of the whole cluster.
const fn ns(plural: &'static str, kind: &'static str, rules: Rules) -> Row {
    Row { plural, kind, namespaced: true, short: &[], categories: &[], verbs: ALL_VERBS, sub: &[], select: &[], rules }
}

const fn cluster(plural: &'static str, kind: &'static str, rules: Rules) -> Row {
    Row { namespaced: false, ..ns(plural, kind, rules) }
}

impl Row {
    const fn short(self, short: &'static [&'static str]) -> Self {
        Self { short, ..self }
    }
    const fn in_all(self) -> Self {
        Self { categories: &["all"], ..self }
    }
    const fn in_extensions(self) -> Self {
        Self { categories: &["api-extensions"], ..self }
    }
    const fn verbs(self, verbs: &'static [&'static str]) -> Self {
        Self { verbs, ..self }
    }
    const fn sub(self, sub: &'static [Sub]) -> Self {
        Self { sub, ..self }
    }
    const fn select(self, select: &'static [&'static str]) -> Self {
        Self { select, ..self }
    }
}

fn plain(_: &Arc<Addresses>) -> Arc<dyn Strategy> {
    Arc::new(Plain)
}

#[rustfmt::skip] // one resource per line, so that it reads as a table
const TABLE: &[(&str, &[Row])] = &[
    ("v1", &[
        ns("bindings", "Binding", plain).verbs(CREATE),
        cluster("componentstatuses", "ComponentStatus", plain).short(&["cs"]).verbs(&["get", "list"]),
        ns("configmaps", "ConfigMap", |_| Arc::new(config::ConfigMap)).short(&["cm"]),
        ns("endpoints", "Endpoints", |_| Arc::new(network::Endpoints)).short(&["ep"]),
        ns("events", "Event", |_| Arc::new(event::Core)).short(&["ev"]).select(&[
            "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
            "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"]),
        ns("limitranges", "LimitRange", |_| Arc::new(small::LimitRange)).short(&["limits"]),
        cluster("namespaces", "Namespace", |_| Arc::new(namespace::Namespace)).short(&["ns"]).select(&["status.phase"])
            .verbs(&["create", "delete", "get", "list", "patch", "update", "watch"])
            .sub(&[("finalize", "", "", &["update"]), STATUS]),
        cluster("nodes", "Node", |_| Arc::new(node::Node)).short(&["no"]).select(&["spec.unschedulable"])
            .sub(&[("proxy", "NodeProxyOptions", "", PROXY), STATUS]),
        ns("persistentvolumeclaims", "PersistentVolumeClaim", |_| Arc::new(storage::Claim)).short(&["pvc"]).sub(&[STATUS]),
        cluster("persistentvolumes", "PersistentVolume", |_| Arc::new(storage::Volume)).short(&["pv"]).sub(&[STATUS]),
        ns("pods", "Pod", |_| Arc::new(pod::Pod)).short(&["po"]).in_all()
            .select(&["spec.hostNetwork", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                      "status.nominatedNodeName", "status.phase", "status.podIP", "status.podIPs"])
            .sub(&[("attach", "PodAttachOptions", "", STREAM), ("binding", "Binding", "", CREATE),
                   ("ephemeralcontainers", "", "", READ_WRITE), ("eviction", "Eviction", "policy/v1", CREATE),
                   ("exec", "PodExecOptions", "", STREAM), ("log", "", "", &["get"]),
                   ("portforward", "PodPortForwardOptions", "", STREAM), ("proxy", "PodProxyOptions", "", PROXY),
                   ("resize", "", "", READ_WRITE), STATUS]),
        ns("podtemplates", "PodTemplate", |_| Arc::new(small::PodTemplate)),
        ns("replicationcontrollers", "ReplicationController", |_| Arc::new(replicaset::ReplicationController)).short(&["rc"]).in_all().sub(&[SCALE, STATUS])
            .select(&["status.replicas"]),
        ns("resourcequotas", "ResourceQuota", |_| Simple::new().status().boxed()).short(&["quota"]).sub(&[STATUS]),
        ns("secrets", "Secret", |_| Arc::new(config::Secret)).select(&["type"]),
        ns("serviceaccounts", "ServiceAccount", plain).short(&["sa"])
            .sub(&[("token", "TokenRequest", "authentication.k8s.io/v1", CREATE)]),
        ns("services", "Service", |addresses| Arc::new(service::Service::new(Arc::clone(addresses)))).short(&["svc"]).in_all().select(&["spec.clusterIP", "spec.type"])
            .sub(&[("proxy", "ServiceProxyOptions", "", PROXY), STATUS]),
    ]),
    ("admissionregistration.k8s.io/v1", &[
        cluster("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", |_| Arc::new(webhook::Configuration { mutating: true })).in_extensions(),
        cluster("validatingadmissionpolicies", "ValidatingAdmissionPolicy", |_| Arc::new(webhook::Policy)).in_extensions().sub(&[STATUS]),
        cluster("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", |_| Arc::new(webhook::PolicyBinding)).in_extensions(),
        cluster("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", |_| Arc::new(webhook::Configuration { mutating: false })).in_extensions(),
    ]),
    ("apiextensions.k8s.io/v1", &[
        cluster("customresourcedefinitions", "CustomResourceDefinition", |_| Arc::new(DefinitionStrategy)).short(&["crd", "crds"]).in_extensions().sub(&[STATUS]),
    ]),
    ("apiregistration.k8s.io/v1", &[
        cluster("apiservices", "APIService", |_| Simple::new().status().boxed()).in_extensions().sub(&[STATUS]),
    ]),
    ("apps/v1", &[
        ns("controllerrevisions", "ControllerRevision", |_| Arc::new(small::ControllerRevision)),
        ns("daemonsets", "DaemonSet", |_| Arc::new(daemonset::DaemonSet)).short(&["ds"]).in_all().sub(&[STATUS]),
        ns("deployments", "Deployment", |_| Arc::new(deployment::Deployment)).short(&["deploy"]).in_all().sub(&[SCALE, STATUS]),
        ns("replicasets", "ReplicaSet", |_| Arc::new(replicaset::ReplicaSet)).short(&["rs"]).in_all().sub(&[SCALE, STATUS]).select(&["status.replicas"]),
        ns("statefulsets", "StatefulSet", |_| Arc::new(statefulset::StatefulSet)).short(&["sts"]).in_all().sub(&[SCALE, STATUS]),
    ]),
    ("authentication.k8s.io/v1", &[
        cluster("selfsubjectreviews", "SelfSubjectReview", plain).verbs(CREATE),
        cluster("tokenreviews", "TokenReview", plain).verbs(CREATE),
    ]),
    ("authorization.k8s.io/v1", &[
        ns("localsubjectaccessreviews", "LocalSubjectAccessReview", plain).verbs(CREATE),
        cluster("selfsubjectaccessreviews", "SelfSubjectAccessReview", plain).verbs(CREATE),
        cluster("selfsubjectrulesreviews", "SelfSubjectRulesReview", plain).verbs(CREATE),
        cluster("subjectaccessreviews", "SubjectAccessReview", plain).verbs(CREATE),
    ]),
    ("autoscaling/v1", &[
        ns("horizontalpodautoscalers", "HorizontalPodAutoscaler", |_| Arc::new(autoscaling::AutoscalerV1)).short(&["hpa"]).in_all().sub(&[STATUS]),
    ]),
    ("autoscaling/v2", &[
        ns("horizontalpodautoscalers", "HorizontalPodAutoscaler", |_| Arc::new(autoscaling::Autoscaler)).short(&["hpa"]).in_all().sub(&[STATUS]),
    ]),
    ("batch/v1", &[
        ns("cronjobs", "CronJob", |_| Arc::new(batch::CronJob)).short(&["cj"]).in_all().sub(&[STATUS]),
        ns("jobs", "Job", |_| Arc::new(batch::Job)).in_all().sub(&[STATUS]).select(&["status.successful"]),
    ]),
    ("certificates.k8s.io/v1", &[
        cluster("certificatesigningrequests", "CertificateSigningRequest", |_| Arc::new(certificates::SigningRequest)).short(&["csr"])
            .select(&["spec.signerName"]).sub(&[("approval", "", "", READ_WRITE), STATUS]),
    ]),
    ("coordination.k8s.io/v1", &[
        ns("leases", "Lease", |_| Arc::new(small::Lease)),
    ]),
    ("discovery.k8s.io/v1", &[
        ns("endpointslices", "EndpointSlice", |_| Arc::new(network::Slice)),
    ]),
    ("events.k8s.io/v1", &[
        ns("events", "Event", |_| Arc::new(event::Events)).short(&["ev"]).select(&[
            "reason", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
            "regarding.resourceVersion", "regarding.fieldPath", "reportingController", "type"]),
    ]),
    ("flowcontrol.apiserver.k8s.io/v1", &[
        cluster("flowschemas", "FlowSchema", |_| Simple::new().status().generation().boxed()).sub(&[STATUS]),
        cluster("prioritylevelconfigurations", "PriorityLevelConfiguration", |_| Simple::new().status().generation().boxed()).sub(&[STATUS]),
    ]),
    ("networking.k8s.io/v1", &[
        cluster("ingressclasses", "IngressClass", |_| Arc::new(network::IngressClass)),
        ns("ingresses", "Ingress", |_| Arc::new(network::Ingress)).short(&["ing"]).sub(&[STATUS]),
        cluster("ipaddresses", "IPAddress", plain).short(&["ip"]).select(&["spec.parentRef.group"]),
        ns("networkpolicies", "NetworkPolicy", |_| Arc::new(network::Policy)).short(&["netpol"]),
        cluster("servicecidrs", "ServiceCIDR", |_| Simple::new().status().boxed()).sub(&[STATUS]),
    ]),
    ("node.k8s.io/v1", &[
        cluster("runtimeclasses", "RuntimeClass", |_| Simple::new().conditional().create_on_update().boxed()),
    ]),
    ("policy/v1", &[
        ns("poddisruptionbudgets", "PodDisruptionBudget", |_| Arc::new(small::DisruptionBudget)).short(&["pdb"]).sub(&[STATUS]),
    ]),
    ("rbac.authorization.k8s.io/v1", &[
        cluster("clusterrolebindings", "ClusterRoleBinding", |_| Arc::new(rbac::Binding { namespaced: false })),
        cluster("clusterroles", "ClusterRole", |_| Arc::new(rbac::Role { namespaced: false })),
        ns("rolebindings", "RoleBinding", |_| Arc::new(rbac::Binding { namespaced: true })),
        ns("roles", "Role", |_| Arc::new(rbac::Role { namespaced: true })),
    ]),
    ("resource.k8s.io/v1", &[
        cluster("deviceclasses", "DeviceClass", |_| Simple::new().generation().boxed()),
        ns("resourceclaims", "ResourceClaim", |_| Simple::new().status().boxed()).sub(&[STATUS]),
        ns("resourceclaimtemplates", "ResourceClaimTemplate", plain),
        cluster("resourceslices", "ResourceSlice", |_| Simple::new().generation().boxed()).select(&["spec.driver", "spec.nodeName"]),
    ]),
    ("scheduling.k8s.io/v1", &[
        cluster("priorityclasses", "PriorityClass", |_| Arc::new(small::PriorityClass)).short(&["pc"]),
    ]),
    ("storage.k8s.io/v1", &[
        cluster("csidrivers", "CSIDriver", |_| Simple::new().conditional().boxed()),
        cluster("csinodes", "CSINode", |_| Simple::new().conditional().boxed()),
        ns("csistoragecapacities", "CSIStorageCapacity", |_| Simple::new().conditional().boxed()),
        cluster("storageclasses", "StorageClass", |_| Arc::new(small::StorageClass)).short(&["sc"]),
        cluster("volumeattachments", "VolumeAttachment", |_| Simple::new().status().conditional().boxed()).sub(&[STATUS]),
        cluster("volumeattributesclasses", "VolumeAttributesClass", plain).short(&["vac"]),
    ]),
];

/// Every built-in resource.
pub(super) fn build(addresses: &Arc<Addresses>) -> Catalog {
    let mut catalog = Catalog::default();
    for (group_version, rows) in TABLE {
        let Some(gv) = GroupVersion::parse(group_version) else { continue };
        for row in *rows {
            catalog.insert(Arc::new(resource(&gv, row, addresses)));
        }
    }
    catalog
}

fn resource(gv: &GroupVersion, row: &Row, addresses: &Arc<Addresses>) -> Resource {
    let strategy = (row.rules)(addresses);
    // Definitions are stored in the version that came before.
    let of_definitions = (row.plural == "customresourcedefinitions").then(|| GroupVersion::new(&gv.group, "v1beta1"));
    let stored = strategy.stored_as().or(of_definitions).unwrap_or_else(|| gv.clone());
    let kept = row.verbs.contains(&"watch");
    let texts = |list: &[&str]| list.iter().map(|text| Arc::from(*text)).collect();
    Resource {
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
        schema: builtin::of_kind(gv, row.kind).map_or_else(Node::default, Node::Builtin),
        strategy,
        custom: None,
        selectable: texts(row.select),
        storage_version_hash: if kept { super::storage_version_hash(&stored, row.kind) } else { "".into() },
    }
}

fn subresource(own: &str, (name, kind, gv, verbs): &Sub) -> Subresource {
    let kind = if kind.is_empty() { own } else { kind };
    Subresource { name: (*name).into(), kind: kind.into(), gv: GroupVersion::parse(gv), verbs: verbs.to_vec() }
}
