//! The roles of kube-controller-manager's controllers: each controller runs as a ServiceAccount of
//! `kube-system` with the name of its role after the prefix (`--use-service-account-credentials`).

use super::{
    BootstrapRole,
    default_roles::{EVENTS_RULE, resource_name_rule, role, rule},
};

/// The prefix of the roles of controllers.
pub(super) const CONTROLLER_ROLE_PREFIX: &str = "system:controller:";

/// ClusterRoles, each bound to the ServiceAccount of its controller.
#[rustfmt::skip] // a rule per line
pub(super) const CONTROLLER_CLUSTER_ROLES: &[BootstrapRole] = &[
    role("system:controller:attachdetach-controller", &[
        rule("list watch", "core", "persistentvolumeclaims persistentvolumes"),
        rule("get list watch", "core", "nodes"),
        rule("update patch", "core", "nodes/status"),
        rule("list watch", "core", "pods"),
        EVENTS_RULE,
        rule("get list watch create delete", "storage.k8s.io", "volumeattachments"),
        rule("get list watch", "storage.k8s.io", "csidrivers"),
        rule("get list watch", "storage.k8s.io", "csinodes"),
    ]),
    role("system:controller:certificate-controller", &[
        rule("get list watch delete", "certificates.k8s.io", "certificatesigningrequests"),
        rule("update", "certificates.k8s.io", "certificatesigningrequests/approval certificatesigningrequests/status"),
        resource_name_rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
        resource_name_rule("sign", "certificates.k8s.io", "signers",
            "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving \
             kubernetes.io/legacy-unknown"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        EVENTS_RULE,
    ]),
    role("system:controller:clusterrole-aggregation-controller", &[
        rule("get list watch update patch escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ]),
    role("system:controller:cronjob-controller", &[
        rule("get list watch update", "batch", "cronjobs"),
        rule("get list watch create update patch delete", "batch", "jobs"),
        rule("update", "batch", "cronjobs/status"),
        rule("update", "batch", "cronjobs/finalizers"),
        rule("list watch delete", "core", "pods"),
        EVENTS_RULE,
    ]),
    role("system:controller:daemon-set-controller", &[
        rule("get list watch", "apps extensions", "daemonsets"),
        rule("update", "apps extensions", "daemonsets/status"),
        rule("update", "apps extensions", "daemonsets/finalizers"),
        rule("list watch", "core", "nodes"),
        rule("list watch create patch delete", "core", "pods"),
        rule("create", "core", "pods/binding"),
        rule("get list watch create update patch delete", "apps", "controllerrevisions"),
        EVENTS_RULE,
    ]),
    role("system:controller:deployment-controller", &[
        rule("get list watch update", "apps extensions", "deployments"),
        rule("update", "apps extensions", "deployments/status"),
        rule("update", "apps extensions", "deployments/finalizers"),
        rule("get list watch create update patch delete", "apps extensions", "replicasets"),
        rule("get list watch update", "core", "pods"),
        EVENTS_RULE,
    ]),
    role("system:controller:disruption-controller", &[
        rule("get list watch", "apps extensions", "deployments"),
        rule("get list watch", "apps extensions", "replicasets"),
        rule("get list watch", "core", "replicationcontrollers"),
        rule("get list watch", "policy", "poddisruptionbudgets"),
        rule("get list watch", "apps", "statefulsets"),
        rule("update", "policy", "poddisruptionbudgets/status"),
        rule("update patch", "core", "pods/status"),
        rule("get", "*", "*/scale"),
        EVENTS_RULE,
    ]),
    role("system:controller:endpoint-controller", &[
        rule("get list watch", "core", "pods services"),
        rule("get list watch create update delete", "core", "endpoints"),
        rule("create", "core", "endpoints/restricted"),
        EVENTS_RULE,
    ]),
    role("system:controller:endpointslice-controller", &[
        rule("get list watch", "core", "nodes pods services"),
        rule("update", "core", "services/finalizers"),
        rule("get list watch create update delete", "discovery.k8s.io", "endpointslices"),
        EVENTS_RULE,
    ]),
    role("system:controller:endpointslicemirroring-controller", &[
        rule("get list watch", "core", "endpoints services"),
        rule("update", "core", "services/finalizers"),
        rule("update", "core", "endpoints/finalizers"),
        rule("get list watch create update delete", "discovery.k8s.io", "endpointslices"),
        EVENTS_RULE,
    ]),
    role("system:controller:ephemeral-volume-controller", &[
        rule("get list watch", "core", "pods"),
        rule("update", "core", "pods/finalizers"),
        rule("get list watch create", "core", "persistentvolumeclaims"),
        EVENTS_RULE,
    ]),
    role("system:controller:expand-controller", &[
        rule("get list watch update patch", "core", "persistentvolumes"),
        rule("update patch", "core", "persistentvolumeclaims/status"),
        rule("get list watch", "core", "persistentvolumeclaims"),
        EVENTS_RULE,
        rule("get", "core", "services"),
    ]),
    role("system:controller:generic-garbage-collector", &[
        rule("get list watch update patch delete", "*", "*"),
        EVENTS_RULE,
    ]),
    role("system:controller:horizontal-pod-autoscaler", &[
        rule("get list watch", "autoscaling", "horizontalpodautoscalers"),
        rule("update", "autoscaling", "horizontalpodautoscalers/status"),
        rule("get update", "*", "*/scale"),
        rule("list watch", "core", "pods"),
        rule("list watch", "metrics.k8s.io", "pods"),
        rule("get list watch", "custom.metrics.k8s.io", "*"),
        rule("get list watch", "external.metrics.k8s.io", "*"),
        EVENTS_RULE,
    ]),
    role("system:controller:job-controller", &[
        rule("get list watch update patch", "batch", "jobs"),
        rule("update", "batch", "jobs/status"),
        rule("update", "batch", "jobs/finalizers"),
        rule("list watch create patch delete", "core", "pods"),
        EVENTS_RULE,
    ]),
    role("system:controller:legacy-service-account-token-cleaner", &[
        resource_name_rule("get", "core", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        rule("patch delete", "core", "secrets"),
    ]),
    role("system:controller:namespace-controller", &[
        rule("get list watch delete", "core", "namespaces"),
        rule("update", "core", "namespaces/finalize namespaces/status"),
        rule("get list watch delete deletecollection", "*", "*"),
    ]),
    role("system:controller:node-controller", &[
        rule("get list watch update patch delete", "core", "nodes"),
        rule("update patch", "core", "nodes/status"),
        rule("update patch", "core", "pods/status"),
        rule("get list watch delete", "core", "pods"),
        EVENTS_RULE,
    ]),
    role("system:controller:persistent-volume-binder", &[
        rule("get list watch create update delete", "core", "persistentvolumes"),
        rule("update", "core", "persistentvolumes/status"),
        rule("get list watch update", "core", "persistentvolumeclaims"),
        rule("update", "core", "persistentvolumeclaims/status"),
        rule("get list watch create delete", "core", "pods"),
        rule("get list watch", "storage.k8s.io", "storageclasses"),
        rule("list watch", "core", "nodes"),
        EVENTS_RULE,
        rule("watch", "core", "events"),
        rule("get", "core", "services"),
    ]),
    role("system:controller:pod-garbage-collector", &[
        rule("list watch delete", "core", "pods"),
        rule("get list watch", "core", "nodes"),
        rule("patch", "core", "pods/status"),
    ]),
    role("system:controller:pv-protection-controller", &[
        rule("get list watch update", "core", "persistentvolumes"),
        EVENTS_RULE,
    ]),
    role("system:controller:pvc-protection-controller", &[
        rule("get list watch update", "core", "persistentvolumeclaims"),
        rule("get list watch", "core", "pods"),
        EVENTS_RULE,
    ]),
    role("system:controller:replicaset-controller", &[
        rule("get list watch update", "apps extensions", "replicasets"),
        rule("update", "apps extensions", "replicasets/status"),
        rule("update", "apps extensions", "replicasets/finalizers"),
        rule("list watch create patch delete", "core", "pods"),
        EVENTS_RULE,
    ]),
    role("system:controller:replication-controller", &[
        rule("get list watch update", "core", "replicationcontrollers"),
        rule("update", "core", "replicationcontrollers/status"),
        rule("update", "core", "replicationcontrollers/finalizers"),
        rule("list watch create patch delete", "core", "pods"),
        EVENTS_RULE,
    ]),
    role("system:controller:resource-claim-controller", &[
        rule("get list watch", "core", "pods"),
        rule("update", "core", "pods/finalizers"),
        rule("get list watch create delete", "resource.k8s.io", "resourceclaims"),
        rule("update patch", "resource.k8s.io", "resourceclaims resourceclaims/status"),
        rule("update patch", "core", "pods/status"),
        EVENTS_RULE,
    ]),
    role("system:controller:resourcequota-controller", &[
        rule("list watch", "*", "*"),
        rule("update", "core", "resourcequotas/status"),
        EVENTS_RULE,
    ]),
    role("system:controller:root-ca-cert-publisher", &[
        rule("create update", "core", "configmaps"),
        EVENTS_RULE,
    ]),
    role("system:controller:route-controller", &[
        rule("list watch", "core", "nodes"),
        rule("patch", "core", "nodes/status"),
        EVENTS_RULE,
    ]),
    role("system:controller:selinux-warning-controller", &[
        EVENTS_RULE,
        rule("get list watch", "core", "persistentvolumes"),
        rule("get list watch", "core", "persistentvolumeclaims"),
        rule("get list watch", "core", "pods"),
        rule("get list watch", "storage.k8s.io", "csidrivers"),
    ]),
    role("system:controller:service-account-controller", &[
        rule("create", "core", "serviceaccounts"),
        EVENTS_RULE,
    ]),
    role("system:controller:service-cidrs-controller", &[
        rule("get list watch update patch", "networking.k8s.io", "servicecidrs"),
        rule("update patch", "networking.k8s.io", "servicecidrs/finalizers"),
        rule("update patch", "networking.k8s.io", "servicecidrs/status"),
        rule("get list watch", "networking.k8s.io", "ipaddresses"),
        EVENTS_RULE,
    ]),
    role("system:controller:service-controller", &[
        rule("get list watch", "core", "services"),
        rule("update patch", "core", "services/status"),
        rule("list watch", "core", "nodes"),
        EVENTS_RULE,
    ]),
    role("system:controller:statefulset-controller", &[
        rule("list watch", "core", "pods"),
        rule("get list watch", "apps", "statefulsets"),
        rule("update", "apps", "statefulsets/status"),
        rule("update", "apps", "statefulsets/finalizers"),
        rule("get create update patch delete", "core", "pods"),
        rule("get list watch create update patch delete", "apps", "controllerrevisions"),
        rule("get list watch create", "core", "persistentvolumeclaims"),
        rule("update delete", "core", "persistentvolumeclaims"),
        rule("update", "core", "pods/finalizers"),
        EVENTS_RULE,
    ]),
    role("system:controller:ttl-after-finished-controller", &[
        rule("get list watch delete", "batch", "jobs"),
        EVENTS_RULE,
    ]),
    role("system:controller:ttl-controller", &[
        rule("list watch update patch", "core", "nodes"),
        EVENTS_RULE,
    ]),
    role("system:controller:validatingadmissionpolicy-status-controller", &[
        rule("get list watch", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        rule("get update patch", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
        EVENTS_RULE,
    ]),
    role("system:controller:volumeattributesclass-protection-controller", &[
        rule("get list watch", "core", "persistentvolumeclaims"),
        rule("get list watch", "core", "persistentvolumes"),
        rule("get list watch update", "storage.k8s.io", "volumeattributesclasses"),
        EVENTS_RULE,
    ]),
];

/// Roles of one namespace, each bound to the ServiceAccount of its controller.
#[rustfmt::skip] // a rule per line
pub(super) const CONTROLLER_ROLES: &[(&str, BootstrapRole)] = &[
    ("kube-public", role("system:controller:bootstrap-signer", &[
        rule("get list watch", "core", "configmaps"),
        resource_name_rule("update", "core", "configmaps", "cluster-info"),
        EVENTS_RULE,
    ])),
    ("kube-system", role("system:controller:bootstrap-signer", &[
        rule("get list watch", "core", "secrets"),
    ])),
    ("kube-system", role("system:controller:cloud-provider", &[
        rule("get list watch create", "core", "configmaps"),
    ])),
    ("kube-system", role("system:controller:token-cleaner", &[
        rule("get list watch delete", "core", "secrets"),
        EVENTS_RULE,
    ])),
];
