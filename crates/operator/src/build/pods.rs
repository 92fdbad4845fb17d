//! The workloads, and what their pods look like.

use kubewake_api::{
    Amounts,
    render::{POD_IP, SECRETS_DIRECTORY},
};
use kubewake_release::pull_policy;
use serde_json::{Value, json};

use super::{
    Surroundings, namespaced,
    network::{HEALTH, METRICS, Port, received, received_by_sticky},
    texts,
};
use crate::{
    apply::Desired,
    kind::Kind,
    names::{self, Part},
};

/// Until it is known everywhere that a pod is going, senders are served.
const LINGER_SECONDS: u64 = 5;
/// How long a collector goes on delivering what it holds.
const DRAIN_SECONDS: u64 = 25;
/// Both of them, and some to spare.
const GRACE_SECONDS: u64 = 40;
const _: () = assert!(GRACE_SECONDS > LINGER_SECONDS + DRAIN_SECONDS, "a collector is killed while it delivers");
/// Nobody in particular, who owns nothing.
const USER: u32 = 10001;

pub(super) fn gateway(around: &Surroundings) -> Desired {
    let pod = Pod {
        name: names::GATEWAY,
        ports: received(around),
        amounts: around.settings.gateway(),
        // Where it says which pod sent something, and where it finds the tier behind it, it reads the API. Without either the token lets it do nothing; it has
        // one all the same, as pods that were made before a pipeline asks for these go on.
        has_token: true,
    };
    let spec = json!({
        "selector": {"matchLabels": names::selector(names::GATEWAY)},
        "revisionHistoryLimit": 2,
        // A new one takes over before an old one goes.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": pod.template(around),
    });
    namespaced(around, Kind::Deployment, names::GATEWAY, json!({"spec": spec}))
}

pub(super) fn sticky(around: &Surroundings) -> Desired {
    let pod =
        Pod { name: names::STICKY, ports: received_by_sticky(), amounts: around.settings.sticky(), has_token: false };
    let spec = json!({
        "selector": {"matchLabels": names::selector(names::STICKY)},
        "serviceName": names::STICKY,
        "replicas": around.settings.sticky_replicas,
        "revisionHistoryLimit": 2,
        "podManagementPolicy": "Parallel",
        "template": pod.template(around),
    });
    namespaced(around, Kind::StatefulSet, names::STICKY, json!({"spec": spec}))
}

struct Pod {
    name: &'static str,
    ports: Vec<Port>,
    amounts: Amounts,
    has_token: bool,
}

impl Pod {
    fn template(&self, around: &Surroundings) -> Value {
        let mut labels = names::labels(self.name, Part::Layer);
        labels.extend(names::collectors());
        let image = around.settings.image.as_ref().unwrap_or(&around.image);
        json!({
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": self.name,
                "automountServiceAccountToken": self.has_token,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": GRACE_SECONDS,
                "imagePullSecrets": around.settings.image_pull_secrets,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "affinity": self.affinity(),
                "topologySpreadConstraints": [self.spread()],
                "containers": [self.container(image)],
                "volumes": [
                    {"name": "config", "configMap": {"name": self.name}},
                    {"name": "secrets", "secret": {"secretName": names::GATEWAY, "defaultMode": 0o440}},
                ],
            },
        })
    }

    /// Apart from each other, where there are nodes enough.
    fn affinity(&self) -> Value {
        let selector = json!({"matchLabels": names::selector(self.name)});
        let term = json!({"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"});
        json!({"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}],
        }})
    }

    fn spread(&self) -> Value {
        json!({
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": names::selector(self.name)},
        })
    }

    fn container(&self, image: &str) -> Value {
        let ports = self.ports.iter().chain(&[METRICS, HEALTH]);
        let ports = ports.map(|port| json!({"name": port.name, "containerPort": port.number, "protocol": "TCP"}));
        let at = |path: &str| json!({"path": path, "port": HEALTH.name});
        json!({
            "name": "collector",
            "image": image,
            // Said, because a policy that the API server chose for one image stays when another one is named.
            "imagePullPolicy": pull_policy(image),
            "args": [format!("--config={}/{}", texts::CONFIG_FOLDER, texts::CONFIG), format!("--drain-seconds={DRAIN_SECONDS}")],
            "env": [
                from_field(POD_IP, "status.podIP"),
                from_field("POD_NAME", "metadata.name"),
                from_field("POD_NAMESPACE", "metadata.namespace"),
                from_field("NODE_NAME", "spec.nodeName"),
            ],
            "ports": ports.collect::<Vec<_>>(),
            "resources": {"requests": self.amounts.requests, "limits": self.amounts.limits},
            "startupProbe": {"httpGet": at("/readyz"), "periodSeconds": 1, "failureThreshold": 60},
            "livenessProbe": {"httpGet": at("/livez")},
            "readinessProbe": {"httpGet": at("/readyz")},
            "lifecycle": {"preStop": {"sleep": {"seconds": LINGER_SECONDS}}},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "config", "mountPath": texts::CONFIG_FOLDER, "readOnly": true},
                {"name": "secrets", "mountPath": SECRETS_DIRECTORY, "readOnly": true},
            ],
        })
    }
}

fn from_field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}
