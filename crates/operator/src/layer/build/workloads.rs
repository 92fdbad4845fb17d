//! The collectors' workloads and their pod templates.

use kubewake_api::{
    EffectiveResources,
    render::{NODE_NAME_VARIABLE, POD_IP_VARIABLE, SECRETS_DIRECTORY},
};
use kubewake_release::pull_policy;
use serde_json::{Value, json};

use super::{
    BuildContext, documents, namespaced_object,
    network::{CollectorPort, HEALTH_LISTENER, METRICS_LISTENER, gateway_ports, sticky_ports},
};
use crate::{
    model::{
        names::{self, ManagedPart},
        object_kind::ObjectKind,
    },
    objects::apply::DesiredObject,
};

/// How long the phases of a pod's shutdown take.
#[derive(Clone, Copy)]
struct ShutdownTimes {
    /// How long a pod keeps serving after it was deleted.
    linger_seconds: u64,
    /// How long its collector then delivers what it holds.
    drain_seconds: u64,
}

/// Allowance for objects that are deleted together but learn of it at different times, and for the kubelet's
/// own delay.
const SKEW_SECONDS: u64 = 5;
/// Senders are served until every node knows that the pod is going.
const GATEWAY_SHUTDOWN: ShutdownTimes = ShutdownTimes { linger_seconds: 5, drain_seconds: 25 };
/// After the last pipeline the garbage collector removes gateways and sticky tier at once. So the tier
/// accepts what gateways hold until these have ended, and delivers it then. In a rollout the longer wait
/// costs gateways nothing: they turn to the pods that are ready.
const STICKY_SHUTDOWN: ShutdownTimes =
    ShutdownTimes { linger_seconds: GATEWAY_SHUTDOWN.stop_seconds() + SKEW_SECONDS, ..GATEWAY_SHUTDOWN };

impl ShutdownTimes {
    /// The time until a collector has ended by itself.
    const fn stop_seconds(self) -> u64 {
        self.linger_seconds + self.drain_seconds
    }

    /// The grace period: `stop_seconds` and a margin, since a collector that is killed while it delivers
    /// loses what it holds.
    const fn grace_seconds(self) -> u64 {
        self.stop_seconds() + 2 * SKEW_SECONDS
    }
}

/// An arbitrary unprivileged user, who owns no files but the state of agents.
pub(super) const RUN_AS_USER: u32 = 10001;

pub(super) fn gateway_deployment(around: &BuildContext) -> DesiredObject {
    let pod = CollectorPodTemplate {
        name: names::GATEWAY,
        shutdown: GATEWAY_SHUTDOWN,
        ports: gateway_ports(around),
        amounts: around.settings.gateway(),
        // The token serves to look up pods and to find the sticky tier. It is always mounted, although it has
        // no rights without either: pods that exist before a pipeline needs these rights are not replaced.
        has_token: true,
    };
    let spec = json!({
        "selector": {"matchLabels": names::selector_labels(names::GATEWAY)},
        "revisionHistoryLimit": 2,
        // A new pod becomes ready before an old one ends.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": pod.pod_template(around),
    });
    namespaced_object(around, ObjectKind::Deployment, names::GATEWAY, json!({"spec": spec}))
}

pub(super) fn sticky_stateful_set(around: &BuildContext) -> DesiredObject {
    let pod = CollectorPodTemplate {
        name: names::STICKY,
        shutdown: STICKY_SHUTDOWN,
        ports: sticky_ports(),
        amounts: around.settings.sticky(),
        has_token: false,
    };
    let spec = json!({
        "selector": {"matchLabels": names::selector_labels(names::STICKY)},
        "serviceName": names::STICKY,
        "replicas": around.settings.sticky_replicas,
        "revisionHistoryLimit": 2,
        "podManagementPolicy": "Parallel",
        "template": pod.pod_template(around),
    });
    namespaced_object(around, ObjectKind::StatefulSet, names::STICKY, json!({"spec": spec}))
}

struct CollectorPodTemplate {
    name: &'static str,
    shutdown: ShutdownTimes,
    ports: Vec<CollectorPort>,
    amounts: EffectiveResources,
    has_token: bool,
}

impl CollectorPodTemplate {
    fn pod_template(&self, around: &BuildContext) -> Value {
        let mut labels = names::managed_labels(self.name, ManagedPart::Layer);
        labels.extend(names::collector_labels());
        let image = around.settings.image.as_ref().unwrap_or(&around.image);
        json!({
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": self.name,
                "automountServiceAccountToken": self.has_token,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": self.shutdown.grace_seconds(),
                "imagePullSecrets": around.settings.image_pull_secrets,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": RUN_AS_USER, "runAsGroup": RUN_AS_USER, "fsGroup": RUN_AS_USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "affinity": self.affinity(),
                "topologySpreadConstraints": [self.topology_spread()],
                "containers": [self.container(image)],
                "volumes": [
                    {"name": "config", "configMap": {"name": self.name}},
                    {"name": "secrets", "secret": {"secretName": names::GATEWAY, "defaultMode": 0o440}},
                ],
            },
        })
    }

    /// Spreads the pods over nodes where there are enough.
    fn affinity(&self) -> Value {
        let selector = json!({"matchLabels": names::selector_labels(self.name)});
        let term = json!({"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"});
        json!({"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}],
        }})
    }

    fn topology_spread(&self) -> Value {
        json!({
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": names::selector_labels(self.name)},
        })
    }

    fn container(&self, image: &str) -> Value {
        let ports = self.ports.iter().chain(&[METRICS_LISTENER, HEALTH_LISTENER]);
        let ports = ports.map(|port| json!({"name": port.name, "containerPort": port.number, "protocol": "TCP"}));
        let at = |path: &str| json!({"path": path, "port": HEALTH_LISTENER.name});
        json!({
            "name": "collector",
            "image": image,
            // Set explicitly: the policy that an API server chose for one image would stay when the image
            // changes.
            "imagePullPolicy": pull_policy(image),
            "args": [format!("--config={}/{}", documents::CONFIG_DIR, names::CONFIG_FILE), format!("--drain-seconds={}", self.shutdown.drain_seconds)],
            "env": pod_variables(),
            "ports": ports.collect::<Vec<_>>(),
            "resources": {"requests": self.amounts.requests, "limits": self.amounts.limits},
            "startupProbe": {"httpGet": at("/readyz"), "periodSeconds": 1, "failureThreshold": 60},
            "livenessProbe": {"httpGet": at("/livez")},
            "readinessProbe": {"httpGet": at("/readyz")},
            "lifecycle": {"preStop": {"sleep": {"seconds": self.shutdown.linger_seconds}}},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "config", "mountPath": documents::CONFIG_DIR, "readOnly": true},
                {"name": "secrets", "mountPath": SECRETS_DIRECTORY, "readOnly": true},
            ],
        })
    }
}

/// The variables by which a collector knows its pod.
pub(super) fn pod_variables() -> Vec<Value> {
    vec![
        env_from_field(POD_IP_VARIABLE, "status.podIP"),
        env_from_field("POD_NAME", "metadata.name"),
        env_from_field("POD_NAMESPACE", "metadata.namespace"),
        env_from_field(NODE_NAME_VARIABLE, "spec.nodeName"),
    ]
}

fn env_from_field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}
