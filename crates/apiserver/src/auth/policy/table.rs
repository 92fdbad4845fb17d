//! The tables.

use super::{Binding, Role, Rule};

const READ: &str = "get list watch";
const WRITE: &str = "create update patch delete deletecollection";
const READ_WRITE: &str = "get list watch create update patch delete deletecollection";
const READ_UPDATE: &str = "get list watch update patch";
const CSR: &str = "certificates.k8s.io";

pub(super) const fn rule(verbs: &'static str, groups: &'static str, resources: &'static str) -> Rule {
    Rule { verbs, groups, resources, names: "", urls: "" }
}

pub(super) const fn named(
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
) -> Rule {
    Rule { verbs, groups, resources, names, urls: "" }
}

pub(super) const fn urls(verbs: &'static str, urls: &'static str) -> Rule {
    Rule { verbs, groups: "", resources: "", names: "", urls }
}

pub(super) const fn role(name: &'static str, rules: &'static [Rule]) -> Role {
    Role { name, to: "", from: "", rules }
}

const fn gathers(name: &'static str, to: &'static str) -> Role {
    Role { name, to, from: name, rules: &[] }
}

const fn binding(name: &'static str, subjects: &'static [&'static str]) -> Binding {
    Binding { name, role: "", subjects }
}

pub(super) const EVENTS: Rule = rule("create patch update", "core events.k8s.io", "events");
const TOKEN_REVIEWS: Rule = rule("create", "authentication.k8s.io", "tokenreviews");
const ACCESS_REVIEWS: Rule = rule("create", "authorization.k8s.io", "subjectaccessreviews");

pub(super) const CLUSTER_ROLES: &[Role] = &[
    role("cluster-admin", &[rule("*", "*", "*"), urls("*", "*")]),
    role(
        "system:discovery",
        &[urls("get", "/livez /readyz /healthz /version /version/ /openapi /openapi/* /api /api/* /apis /apis/*")],
    ),
    role(
        "system:monitoring",
        &[
            urls("get", "/metrics /metrics/slis /livez /readyz /healthz /livez/* /readyz/* /healthz/*"),
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
    role("system:public-info-viewer", &[urls("get", "/livez /readyz /healthz /version /version/")]),
    gathers("admin", ""),
    gathers("edit", "admin"),
    gathers("view", "edit"),
    Role {
        name: "system:aggregate-to-admin",
        to: "admin",
        from: "",
        rules: &[
            rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
            rule(READ_WRITE, "rbac.authorization.k8s.io", "roles rolebindings"),
        ],
    },
    Role { name: "system:aggregate-to-edit", to: "edit", from: "", rules: EDIT },
    Role { name: "system:aggregate-to-view", to: "view", from: "", rules: VIEW },
    role(
        "system:heapster",
        &[rule(READ, "core", "events pods nodes namespaces"), rule(READ, "extensions", "deployments")],
    ),
    role("system:node", NODE),
    role(
        "system:node-problem-detector",
        &[rule("get", "core", "nodes"), rule("patch", "core", "nodes/status"), EVENTS],
    ),
    role("system:node-bootstrapper", &[rule("create get list watch", CSR, "certificatesigningrequests")]),
    role("system:auth-delegator", &[TOKEN_REVIEWS, ACCESS_REVIEWS]),
    role("system:kube-aggregator", &[rule(READ, "core", "services endpoints")]),
    role("system:kube-controller-manager", CONTROLLER_MANAGER),
    role("system:kube-dns", &[rule("list watch", "core", "endpoints services")]),
    role(
        "system:persistent-volume-provisioner",
        &[
            rule("get list watch create delete", "core", "persistentvolumes"),
            rule("get list watch update", "core", "persistentvolumeclaims"),
            rule(READ, "storage.k8s.io", "storageclasses"),
            rule("watch", "core", "events"),
            EVENTS,
        ],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        &[rule("create", CSR, "certificatesigningrequests/nodeclient")],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        &[rule("create", CSR, "certificatesigningrequests/selfnodeclient")],
    ),
    role(
        "system:volume-scheduler",
        &[
            rule(READ_UPDATE, "core", "persistentvolumes"),
            rule(READ, "storage.k8s.io", "storageclasses"),
            rule(READ_UPDATE, "core", "persistentvolumeclaims"),
        ],
    ),
    role(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[named("approve", CSR, "signers", "kubernetes.io/legacy-unknown")],
    ),
    role(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[named("approve", CSR, "signers", "kubernetes.io/kubelet-serving")],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[named("approve", CSR, "signers", "kubernetes.io/kube-apiserver-client")],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[named("approve", CSR, "signers", "kubernetes.io/kube-apiserver-client-kubelet")],
    ),
    role(
        "system:service-account-issuer-discovery",
        &[urls(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        )],
    ),
    role(
        "system:kubelet-api-admin",
        &[
            rule(READ, "core", "nodes"),
            rule("proxy", "core", "nodes"),
            rule("*", "core", "nodes/proxy nodes/metrics nodes/stats nodes/log"),
            rule("*", "core", "nodes/pods nodes/healthz nodes/configz"),
        ],
    ),
    role(
        "system:node-proxier",
        &[
            rule("list watch", "core", "services endpoints"),
            rule(READ, "core", "nodes"),
            EVENTS,
            rule("list watch", "networking.k8s.io", "servicecidrs"),
            rule("list watch", "discovery.k8s.io", "endpointslices"),
        ],
    ),
    role("system:kube-scheduler", SCHEDULER),
];

pub(super) const CLUSTER_BINDINGS: &[Binding] = &[
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

pub(super) const ROLES: &[Role] = &[
    role(
        "extension-apiserver-authentication-reader",
        &[named(READ, "core", "configmaps", "extension-apiserver-authentication")],
    ),
    role("system::leader-locking-kube-controller-manager", LEADER),
    role("system::leader-locking-kube-scheduler", LEADER),
];

pub(super) const BINDINGS: &[Binding] = &[
    Binding {
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

const LEADER: &[Rule] = &[
    rule("get watch list create update", "coordination.k8s.io", "leases"),
    rule("get watch list create update", "coordination.k8s.io", "leasecandidates"),
];

const VIEW: &[Rule] = &[
    rule(
        READ,
        "core",
        "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status endpoints \
         persistentvolumeclaims persistentvolumeclaims/status configmaps",
    ),
    rule(
        READ,
        "core",
        "limitranges resourcequotas bindings pods/status resourcequotas/status namespaces/status \
         replicationcontrollers/status pods/log",
    ),
    rule(READ, "core", "namespaces"),
    rule(READ, "core events.k8s.io", "events"),
    rule(READ, "discovery.k8s.io", "endpointslices"),
    rule(
        READ,
        "apps",
        "controllerrevisions statefulsets statefulsets/status statefulsets/scale daemonsets daemonsets/status deployments \
         deployments/status deployments/scale replicasets replicasets/status replicasets/scale",
    ),
    rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ, "batch", "jobs cronjobs cronjobs/status jobs/status"),
    rule(
        READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status replicasets \
         replicasets/scale replicasets/status replicationcontrollers/scale networkpolicies",
    ),
    rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ, "networking.k8s.io", "networkpolicies ingresses ingresses/status"),
    rule(READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
];

const EDIT: &[Rule] = &[
    rule(READ, "core", "pods/attach pods/proxy pods/exec pods/portforward secrets services/proxy"),
    rule("impersonate", "core", "serviceaccounts"),
    rule(WRITE, "core", "pods pods/attach pods/proxy pods/exec pods/portforward"),
    rule("create", "core", "pods/eviction"),
    rule(
        WRITE,
        "core",
        "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/proxy persistentvolumeclaims \
         configmaps secrets",
    ),
    rule("create", "core", "serviceaccounts/token"),
    rule(WRITE, "core events.k8s.io", "events"),
    rule(
        WRITE,
        "apps",
        "statefulsets statefulsets/scale daemonsets deployments deployments/scale deployments/rollback replicasets \
         replicasets/scale",
    ),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "jobs cronjobs"),
    rule(
        WRITE,
        "extensions",
        "daemonsets deployments deployments/scale deployments/rollback ingresses replicasets replicasets/scale \
         replicationcontrollers/scale networkpolicies",
    ),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(WRITE, "networking.k8s.io", "networkpolicies ingresses"),
    rule(READ_WRITE, "coordination.k8s.io", "leases"),
    rule(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
];

const NODE: &[Rule] = &[
    TOKEN_REVIEWS,
    rule("create", "authorization.k8s.io", "subjectaccessreviews localsubjectaccessreviews"),
    rule(READ, "core", "services"),
    rule("create get list watch", "core", "nodes"),
    rule("update patch", "core", "nodes/status"),
    rule("update patch", "core", "nodes"),
    EVENTS,
    rule(READ, "core", "pods"),
    rule("create delete", "core", "pods"),
    rule("update patch", "core", "pods/status"),
    rule("create", "core", "pods/eviction"),
    rule(READ, "core", "secrets configmaps"),
    rule("get", "core", "persistentvolumeclaims persistentvolumes"),
    rule("get", "core", "endpoints"),
    rule("create get list watch", CSR, "certificatesigningrequests"),
    rule("get create update patch delete", "coordination.k8s.io", "leases"),
    rule("get", "storage.k8s.io", "volumeattachments"),
    rule("create", "core", "serviceaccounts/token"),
    rule("get update patch", "core", "persistentvolumeclaims/status"),
    rule(READ, "storage.k8s.io", "csidrivers"),
    rule("get create update patch delete", "storage.k8s.io", "csinodes"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    rule("get", "resource.k8s.io", "resourceclaims"),
    rule("deletecollection", "resource.k8s.io", "resourceslices"),
    rule("get", "core", "serviceaccounts"),
];

const CONTROLLER_MANAGER: &[Rule] = &[
    EVENTS,
    rule("create", "coordination.k8s.io", "leases"),
    named("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
    rule("create", "core", "secrets serviceaccounts"),
    rule("delete", "core", "secrets"),
    rule("get", "core", "namespaces secrets serviceaccounts configmaps"),
    rule("update", "core", "secrets serviceaccounts"),
    TOKEN_REVIEWS,
    ACCESS_REVIEWS,
    rule("list watch", "*", "*"),
    rule("create", "core", "serviceaccounts/token"),
];

const SCHEDULER: &[Rule] = &[
    EVENTS,
    rule("create", "coordination.k8s.io", "leases"),
    named("get update list watch", "coordination.k8s.io", "leases", "kube-scheduler"),
    rule(READ_WRITE, "coordination.k8s.io", "leasecandidates"),
    rule(READ, "core", "nodes"),
    rule("get list watch delete", "core", "pods"),
    rule("create", "core", "pods/binding bindings"),
    rule("patch update", "core", "pods/status"),
    rule(READ, "core", "services replicationcontrollers"),
    rule(READ, "apps extensions", "replicasets"),
    rule(READ, "apps", "statefulsets"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule(READ, "core", "persistentvolumeclaims persistentvolumes"),
    TOKEN_REVIEWS,
    ACCESS_REVIEWS,
    rule(READ, "storage.k8s.io", "csinodes"),
    rule(READ, "storage.k8s.io", "volumeattachments"),
    rule(READ, "core", "namespaces"),
    rule(READ, "storage.k8s.io", "csidrivers"),
    rule(READ, "storage.k8s.io", "csistoragecapacities"),
    rule(READ, "resource.k8s.io", "deviceclasses"),
    rule(READ_UPDATE, "resource.k8s.io", "resourceclaims"),
    rule(READ_UPDATE, "resource.k8s.io", "resourceclaims/status"),
    rule("update", "core", "pods/finalizers"),
    rule(READ, "resource.k8s.io", "resourceslices"),
];
