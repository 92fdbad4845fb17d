//! The collectors on the nodes: a DaemonSet in a namespace of its own, with everything that it needs.
//!
//! A pod of it mounts directories of its node, which Pod Security allows only in a privileged namespace. It still has
//! few rights: the logs and the directories of the container runtime are read-only, its user is not root, and it
//! reads logs because they belong to the group 0. Only the init container is root, with the two capabilities that it
//! takes to give the state directory to that user.

use kubewake_api::{
    CollectorSettings,
    render::{POD_LOG_DIRECTORY, SECRETS_DIRECTORY, STATE_DIRECTORY},
};
use kubewake_release::pull_policy;
use serde_json::{Value, json};

use super::{
    BuildContext, cluster_object, documents, namespaced_object,
    network::{self, HEALTH_LISTENER, METRICS_LISTENER},
    rbac::{RBAC_GROUP, policy_rules},
    scaling,
    workloads::{self, RUN_AS_USER},
};
use crate::{
    model::{
        names::{self, ManagedPart},
        object_kind::ObjectKind,
    },
    objects::apply::DesiredObject,
};

/// The group of root: kubelets let it read logs.
const LOG_READER_GROUP: u32 = 0;
/// How long an agent delivers what it holds after SIGTERM. It holds little, and the next one reads on from the files.
const DRAIN_SECONDS: u64 = 10;
/// The margin of a kubelet.
const GRACE_SECONDS: u64 = DRAIN_SECONDS + 10;

/// The agents' rights in the cluster: to look up pods and namespaces. They are the pipelines', and not the anchor's.
pub fn agent_rights(around: &BuildContext) -> Vec<DesiredObject> {
    let binding = json!({
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": names::AGENT},
        "subjects": [{"kind": "ServiceAccount", "name": names::AGENT, "namespace": around.namespace}],
    });
    let rules = policy_rules("", &["pods", "namespaces"]);
    vec![
        cluster_object(around, ObjectKind::ClusterRole, names::AGENT, rules),
        cluster_object(around, ObjectKind::ClusterRoleBinding, names::AGENT, binding),
    ]
}

/// All objects of the agents' namespace but the document, the Secret and the anchor, in the order in which they are
/// applied.
pub fn agent_objects(around: &BuildContext) -> Vec<DesiredObject> {
    let account = json!({"automountServiceAccountToken": false});
    let mut objects = vec![
        namespaced_object(around, ObjectKind::ServiceAccount, names::AGENT, account),
        network::metrics_service(around),
        network_policy(around),
        daemon_set(around),
        scaling::pod_monitor(around),
    ];
    objects.sort_by_key(|desired| desired.kind);
    objects
}

/// Agents receive nothing. The operator asks for their status, and scrapers for their metrics.
fn network_policy(around: &BuildContext) -> DesiredObject {
    let operator = json!({"kubernetes.io/metadata.name": around.settings.namespace});
    let scrapers = json!([
        {"podSelector": {}},
        {"namespaceSelector": {"matchLabels": operator}},
        network::labelled_scrapers(),
    ]);
    let ports = [METRICS_LISTENER, HEALTH_LISTENER].map(|port| json!({"port": port.number, "protocol": "TCP"}));
    let spec = json!({
        "podSelector": {"matchLabels": names::selector_labels(names::AGENT)},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": ports, "from": scrapers}],
    });
    namespaced_object(around, ObjectKind::NetworkPolicy, names::AGENT, json!({"spec": spec}))
}

fn daemon_set(around: &BuildContext) -> DesiredObject {
    let mut labels = names::managed_labels(names::AGENT, ManagedPart::Layer);
    labels.extend(names::collector_labels());
    let settings = &around.settings;
    let image = settings.image.as_ref().unwrap_or(&around.image);
    let spec = json!({
        "selector": {"matchLabels": names::selector_labels(names::AGENT)},
        "revisionHistoryLimit": 2,
        // Files wait for the next agent, so a tenth of the nodes may be without one at a time.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": names::AGENT,
                "automountServiceAccountToken": true,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": GRACE_SECONDS,
                "imagePullSecrets": settings.image_pull_secrets,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                // Nodes that are tainted have logs, too.
                "tolerations": [{"operator": "Exists"}],
                "initContainers": [state_container(image)],
                "containers": [agent_container(settings, image)],
                "volumes": volumes(settings),
            },
        },
    });
    namespaced_object(around, ObjectKind::DaemonSet, names::AGENT, json!({"spec": spec}))
}

/// Gives the state directory to the agent's user, and to nobody else.
fn state_container(image: &str) -> Value {
    json!({
        "name": "state",
        "image": image,
        "imagePullPolicy": pull_policy(image),
        "args": ["prepare-state", format!("--directory={STATE_DIRECTORY}"), format!("--owner={RUN_AS_USER}")],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": LOG_READER_GROUP,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "FOWNER"]},
        },
        "volumeMounts": [{"name": "state", "mountPath": STATE_DIRECTORY}],
    })
}

fn agent_container(settings: &CollectorSettings, image: &str) -> Value {
    let ports = [METRICS_LISTENER, HEALTH_LISTENER];
    let ports = ports.map(|port| json!({"name": port.name, "containerPort": port.number, "protocol": "TCP"}));
    let amounts = settings.agent();
    let mut mounts = vec![
        json!({"name": "config", "mountPath": documents::CONFIG_DIR, "readOnly": true}),
        json!({"name": "secrets", "mountPath": SECRETS_DIRECTORY, "readOnly": true}),
        json!({"name": "state", "mountPath": STATE_DIRECTORY}),
        json!({"name": "logs", "mountPath": POD_LOG_DIRECTORY, "readOnly": true}),
    ];
    let linked = settings.linked_log_directories.iter().enumerate();
    mounts.extend(linked.map(|(index, path)| json!({"name": linked_name(index), "mountPath": path, "readOnly": true})));
    let at = |path: &str| json!({"path": path, "port": HEALTH_LISTENER.name});
    json!({
        "name": "collector",
        "image": image,
        // Set explicitly: the policy that an API server chose for one image would stay when the image changes.
        "imagePullPolicy": pull_policy(image),
        "args": [
            format!("--config={}/{}", documents::CONFIG_DIR, names::CONFIG_FILE),
            format!("--drain-seconds={DRAIN_SECONDS}"),
        ],
        "env": workloads::pod_variables(),
        "ports": ports,
        "resources": {"requests": amounts.requests, "limits": amounts.limits},
        "startupProbe": {"httpGet": at("/readyz"), "periodSeconds": 1, "failureThreshold": 60},
        "livenessProbe": {"httpGet": at("/livez")},
        "readinessProbe": {"httpGet": at("/readyz")},
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": RUN_AS_USER,
            "runAsGroup": LOG_READER_GROUP,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    })
}

fn volumes(settings: &CollectorSettings) -> Vec<Value> {
    let directory =
        |name: &str, path: &str, kind: &str| json!({"name": name, "hostPath": {"path": path, "type": kind}});
    let mut volumes = vec![
        json!({"name": "config", "configMap": {"name": names::AGENT}}),
        json!({"name": "secrets", "secret": {"secretName": names::AGENT, "defaultMode": 0o440}}),
        directory("state", STATE_DIRECTORY, "DirectoryOrCreate"),
        directory("logs", POD_LOG_DIRECTORY, "Directory"),
    ];
    // A node whose runtime is another one may lack such a directory, which is no reason to have no agent.
    let linked = settings.linked_log_directories.iter().enumerate();
    volumes.extend(linked.map(|(index, path)| directory(&linked_name(index), path, "")));
    volumes
}

fn linked_name(index: usize) -> String {
    format!("linked-{index}")
}
