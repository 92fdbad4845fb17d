//! The tables of roles and bindings.

use super::{BootstrapBinding, BootstrapRole, BootstrapRule};

const READ_VERBS: &str = "get list watch";
const WRITE_VERBS: &str = "create update patch delete deletecollection";
const READ_WRITE_VERBS: &str = "get list watch create update patch delete deletecollection";
const READ_UPDATE_VERBS: &str = "get list watch update patch";
const CERTIFICATES_GROUP: &str = "certificates.k8s.io";

pub(super) const fn rule(verbs: &'static str, groups: &'static str, resources: &'static str) -> BootstrapRule {
    BootstrapRule { verbs, groups, resources, names: "", urls: "" }
}

pub(super) const fn resource_name_rule(
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
) -> BootstrapRule {
    BootstrapRule { verbs, groups, resources, names, urls: "" }
}

pub(super) const fn url_rule(verbs: &'static str, urls: &'static str) -> BootstrapRule {
    BootstrapRule { verbs, groups: "", resources: "", names: "", urls }
}

pub(super) const fn role(name: &'static str, rules: &'static [BootstrapRule]) -> BootstrapRole {
    BootstrapRole { name, to: "", from: "", rules }
}

const fn aggregated_role(name: &'static str, to: &'static str) -> BootstrapRole {
    BootstrapRole { name, to, from: name, rules: &[] }
}

const fn binding(name: &'static str, subjects: &'static [&'static str]) -> BootstrapBinding {
    BootstrapBinding { name, role: "", subjects }
}

pub(super) const EVENTS_RULE: BootstrapRule = rule("create patch update", "core events.k8s.io", "events");
const TOKEN_REVIEWS_RULE: BootstrapRule = rule("create", "authentication.k8s.io", "tokenreviews");
const ACCESS_REVIEWS_RULE: BootstrapRule = rule("create", "authorization.k8s.io", "subjectaccessreviews");

pub(super) const CLUSTER_ROLES: &[BootstrapRole] = &[
    role("cluster-admin", &[rule("*", "*", "*"), url_rule("*", "*")]),
    role(
        "system:discovery",
        &[url_rule("get", "/livez /readyz /healthz /version /version/ /openapi /openapi/* /api /api/* /apis /apis/*")],
    ),
    role(
        "system:monitoring",
        &[
            url_rule("get", "/metrics /metrics/slis /livez /readyz /healthz /livez/* /readyz/* /healthz/*"),
            rule("get", "core", "nodes/metrics"),
        ],
    ),
    role(
        "system:basic-user",
        &[
            rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            rule("create", "authentication.k8s.io", "selfsubjectreviews"),
        ],
    ),
    role("system:public-info-viewer", &[url_rule("get", "/livez /readyz /healthz /version /version/")]),
    aggregated_role("admin", ""),
    aggregated_role("edit", "admin"),
    aggregated_role("view", "edit"),
    BootstrapRole {
        name: "system:aggregate-to-admin",
        to: "admin",
        from: "",
        rules: &[
            rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
            rule(READ_WRITE_VERBS, "rbac.authorization.k8s.io", "roles rolebindings"),
        ],
    },
    BootstrapRole { name: "system:aggregate-to-edit", to: "edit", from: "", rules: EDIT_RULES },
    BootstrapRole { name: "system:aggregate-to-view", to: "view", from: "", rules: VIEW_RULES },
    role(
        "system:heapster",
        &[rule(READ_VERBS, "core", "events pods nodes namespaces"), rule(READ_VERBS, "extensions", "deployments")],
    ),
    role("system:node", NODE_RULES),
    role(
        "system:node-problem-detector",
        &[rule("get", "core", "nodes"), rule("patch", "core", "nodes/status"), EVENTS_RULE],
    ),
    role(
        "system:node-bootstrapper",
        &[rule("create get list watch", CERTIFICATES_GROUP, "certificatesigningrequests")],
    ),
    role("system:auth-delegator", &[TOKEN_REVIEWS_RULE, ACCESS_REVIEWS_RULE]),
    role("system:kube-aggregator", &[rule(READ_VERBS, "core", "services endpoints")]),
    role("system:kube-controller-manager", CONTROLLER_MANAGER_RULES),
    role("system:kube-dns", &[rule("list watch", "core", "endpoints services")]),
    role(
        "system:persistent-volume-provisioner",
        &[
            rule("get list watch create delete", "core", "persistentvolumes"),
            rule("get list watch update", "core", "persistentvolumeclaims"),
            rule(READ_VERBS, "storage.k8s.io", "storageclasses"),
            rule("watch", "core", "events"),
            EVENTS_RULE,
        ],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        &[rule("create", CERTIFICATES_GROUP, "certificatesigningrequests/nodeclient")],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        &[rule("create", CERTIFICATES_GROUP, "certificatesigningrequests/selfnodeclient")],
    ),
    role(
        "system:volume-scheduler",
        &[
            rule(READ_UPDATE_VERBS, "core", "persistentvolumes"),
            rule(READ_VERBS, "storage.k8s.io", "storageclasses"),
            rule(READ_UPDATE_VERBS, "core", "persistentvolumeclaims"),
        ],
    ),
    role(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[resource_name_rule("approve", CERTIFICATES_GROUP, "signers", "kubernetes.io/legacy-unknown")],
    ),
    role(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[resource_name_rule("approve", CERTIFICATES_GROUP, "signers", "kubernetes.io/kubelet-serving")],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[resource_name_rule("approve", CERTIFICATES_GROUP, "signers", "kubernetes.io/kube-apiserver-client")],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[resource_name_rule("approve", CERTIFICATES_GROUP, "signers", "kubernetes.io/kube-apiserver-client-kubelet")],
    ),
    role(
        "system:service-account-issuer-discovery",
        &[url_rule(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        )],
    ),
    role(
        "system:kubelet-api-admin",
        &[
            rule(READ_VERBS, "core", "nodes"),
            rule("proxy", "core", "nodes"),
            rule("*", "core", "nodes/proxy nodes/metrics nodes/stats nodes/log"),
            rule("*", "core", "nodes/pods nodes/healthz nodes/configz"),
        ],
    ),
    role(
        "system:node-proxier",
        &[
            rule("list watch", "core", "services endpoints"),
            rule(READ_VERBS, "core", "nodes"),
            EVENTS_RULE,
            rule("list watch", "networking.k8s.io", "servicecidrs"),
            rule("list watch", "discovery.k8s.io", "endpointslices"),
        ],
    ),
    role("system:kube-scheduler", SCHEDULER_RULES),
];

pub(super) const CLUSTER_BINDINGS: &[BootstrapBinding] = &[
    binding("cluster-admin", &["Group:system:masters"]),
    binding("system:monitoring", &["Group:system:monitoring"]),
    binding("system:discovery", &["Group:system:authenticated"]),
    binding("system:basic-user", &["Group:system:authenticated"]),
    binding("system:public-info-viewer", &["Group:system:authenticated", "Group:system:unauthenticated"]),
    binding("system:node-proxier", &["User:system:kube-proxy"]),
    binding("system:kube-controller-manager", &["User:system:kube-controller-manager"]),
    binding("system:kube-dns", &["ServiceAccount:kube-dns"]),
    binding("system:kube-scheduler", &["User:system:kube-scheduler"]),
    binding("system:volume-scheduler", &["User:system:kube-scheduler"]),
    binding("system:node", &[]),
    binding("system:service-account-issuer-discovery", &["Group:system:serviceaccounts"]),
];

pub(super) const ROLES: &[BootstrapRole] = &[
    role(
        "extension-apiserver-authentication-reader",
        &[resource_name_rule(READ_VERBS, "core", "configmaps", "extension-apiserver-authentication")],
    ),
    role("system::leader-locking-kube-controller-manager", LEADER_ELECTION_RULES),
    role("system::leader-locking-kube-scheduler", LEADER_ELECTION_RULES),
];

pub(super) const BINDINGS: &[BootstrapBinding] = &[
    BootstrapBinding {
        name: "system::extension-apiserver-authentication-reader",
        role: "extension-apiserver-authentication-reader",
        subjects: &["User:system:kube-controller-manager", "User:system:kube-scheduler"],
    },
    binding(
        "system::leader-locking-kube-controller-manager",
        &[
            "User:system:kube-controller-manager",
            "ServiceAccount:kube-controller-manager",
            "ServiceAccount:leader-election-controller",
        ],
    ),
    binding("system::leader-locking-kube-scheduler", &["User:system:kube-scheduler", "ServiceAccount:kube-scheduler"]),
];

const LEADER_ELECTION_RULES: &[BootstrapRule] = &[
    rule("get watch list create update", "coordination.k8s.io", "leases"),
    rule("get watch list create update", "coordination.k8s.io", "leasecandidates"),
];

const VIEW_RULES: &[BootstrapRule] = &[
    rule(
        READ_VERBS,
        "core",
        "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status endpoints \
         persistentvolumeclaims persistentvolumeclaims/status configmaps",
    ),
    rule(
        READ_VERBS,
        "core",
        "limitranges resourcequotas bindings pods/status resourcequotas/status namespaces/status \
         replicationcontrollers/status pods/log",
    ),
    rule(READ_VERBS, "core", "namespaces"),
    rule(READ_VERBS, "core events.k8s.io", "events"),
    rule(READ_VERBS, "discovery.k8s.io", "endpointslices"),
    rule(
        READ_VERBS,
        "apps",
        "controllerrevisions statefulsets statefulsets/status statefulsets/scale daemonsets daemonsets/status deployments \
         deployments/status deployments/scale replicasets replicasets/status replicasets/scale",
    ),
    rule(READ_VERBS, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ_VERBS, "batch", "jobs cronjobs cronjobs/status jobs/status"),
    rule(
        READ_VERBS,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status replicasets \
         replicasets/scale replicasets/status replicationcontrollers/scale networkpolicies",
    ),
    rule(READ_VERBS, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ_VERBS, "networking.k8s.io", "networkpolicies ingresses ingresses/status"),
    rule(READ_VERBS, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
];

const EDIT_RULES: &[BootstrapRule] = &[
    rule(READ_VERBS, "core", "pods/attach pods/proxy pods/exec pods/portforward secrets services/proxy"),
    rule("impersonate", "core", "serviceaccounts"),
    rule(WRITE_VERBS, "core", "pods pods/attach pods/proxy pods/exec pods/portforward"),
    rule("create", "core", "pods/eviction"),
    rule(
        WRITE_VERBS,
        "core",
        "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/proxy persistentvolumeclaims \
         configmaps secrets",
    ),
    rule("create", "core", "serviceaccounts/token"),
    rule(WRITE_VERBS, "core events.k8s.io", "events"),
    rule(
        WRITE_VERBS,
        "apps",
        "statefulsets statefulsets/scale daemonsets deployments deployments/scale deployments/rollback replicasets \
         replicasets/scale",
    ),
    rule(WRITE_VERBS, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE_VERBS, "batch", "jobs cronjobs"),
    rule(
        WRITE_VERBS,
        "extensions",
        "daemonsets deployments deployments/scale deployments/rollback ingresses replicasets replicasets/scale \
         replicationcontrollers/scale networkpolicies",
    ),
    rule(WRITE_VERBS, "policy", "poddisruptionbudgets"),
    rule(WRITE_VERBS, "networking.k8s.io", "networkpolicies ingresses"),
    rule(READ_WRITE_VERBS, "coordination.k8s.io", "leases"),
    rule(WRITE_VERBS, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
];

const NODE_RULES: &[BootstrapRule] = &[
    TOKEN_REVIEWS_RULE,
    rule("create", "authorization.k8s.io", "subjectaccessreviews localsubjectaccessreviews"),
    rule(READ_VERBS, "core", "services"),
    rule("create get list watch", "core", "nodes"),
    rule("update patch", "core", "nodes/status"),
    rule("update patch", "core", "nodes"),
    EVENTS_RULE,
    rule(READ_VERBS, "core", "pods"),
    rule("create delete", "core", "pods"),
    rule("update patch", "core", "pods/status"),
    rule("create", "core", "pods/eviction"),
    rule(READ_VERBS, "core", "secrets configmaps"),
    rule("get", "core", "persistentvolumeclaims persistentvolumes"),
    rule("get", "core", "endpoints"),
    rule("create get list watch", CERTIFICATES_GROUP, "certificatesigningrequests"),
    rule("get create update patch delete", "coordination.k8s.io", "leases"),
    rule("get", "storage.k8s.io", "volumeattachments"),
    rule("create", "core", "serviceaccounts/token"),
    rule("get update patch", "core", "persistentvolumeclaims/status"),
    rule(READ_VERBS, "storage.k8s.io", "csidrivers"),
    rule("get create update patch delete", "storage.k8s.io", "csinodes"),
    rule(READ_VERBS, "node.k8s.io", "runtimeclasses"),
    rule("get", "resource.k8s.io", "resourceclaims"),
    rule("deletecollection", "resource.k8s.io", "resourceslices"),
    rule("get", "core", "serviceaccounts"),
];

const CONTROLLER_MANAGER_RULES: &[BootstrapRule] = &[
    EVENTS_RULE,
    rule("create", "coordination.k8s.io", "leases"),
    resource_name_rule("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
    rule("create", "core", "secrets serviceaccounts"),
    rule("delete", "core", "secrets"),
    rule("get", "core", "namespaces secrets serviceaccounts configmaps"),
    rule("update", "core", "secrets serviceaccounts"),
    TOKEN_REVIEWS_RULE,
    ACCESS_REVIEWS_RULE,
    rule("list watch", "*", "*"),
    rule("create", "core", "serviceaccounts/token"),
];

const SCHEDULER_RULES: &[BootstrapRule] = &[
    EVENTS_RULE,
    rule("create", "coordination.k8s.io", "leases"),
    resource_name_rule("get update list watch", "coordination.k8s.io", "leases", "kube-scheduler"),
    rule(READ_WRITE_VERBS, "coordination.k8s.io", "leasecandidates"),
    rule(READ_VERBS, "core", "nodes"),
    rule("get list watch delete", "core", "pods"),
    rule("create", "core", "pods/binding bindings"),
    rule("patch update", "core", "pods/status"),
    rule(READ_VERBS, "core", "services replicationcontrollers"),
    rule(READ_VERBS, "apps extensions", "replicasets"),
    rule(READ_VERBS, "apps", "statefulsets"),
    rule(READ_VERBS, "policy", "poddisruptionbudgets"),
    rule(READ_VERBS, "core", "persistentvolumeclaims persistentvolumes"),
    TOKEN_REVIEWS_RULE,
    ACCESS_REVIEWS_RULE,
    rule(READ_VERBS, "storage.k8s.io", "csinodes"),
    rule(READ_VERBS, "storage.k8s.io", "volumeattachments"),
    rule(READ_VERBS, "core", "namespaces"),
    rule(READ_VERBS, "storage.k8s.io", "csidrivers"),
    rule(READ_VERBS, "storage.k8s.io", "csistoragecapacities"),
    rule(READ_VERBS, "resource.k8s.io", "deviceclasses"),
    rule(READ_UPDATE_VERBS, "resource.k8s.io", "resourceclaims"),
    rule(READ_UPDATE_VERBS, "resource.k8s.io", "resourceclaims/status"),
    rule("update", "core", "pods/finalizers"),
    rule(READ_VERBS, "resource.k8s.io", "resourceslices"),
];
