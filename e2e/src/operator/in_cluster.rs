//! The operator inside a cluster that existed before the story.
//!
//! It is installed from `kubewake operator manifests`, with the permissions of its own ServiceAccount, and
//! removed with everything else when the story ends. It does not run beside the story as elsewhere, because it
//! reaches collectors at the addresses of their pods. The manifests are changed in a few places: there is one
//! replica, with a grace period of one second; it serves no webhook, so that pipelines can be created while it
//! does not run; and the API server may reach the status of collectors, so that stories can, too.
//!
//! *Assumed*: nobody else uses Kubewake there, because pipelines are cluster-scoped; otherwise a story refuses
//! to begin. Stories of one program take turns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kubewake_release::{IMAGE_REGISTRY, VERSION};

use super::OPERATOR_NAMESPACE;
use crate::{Kubectl, process::kubewake, wait_until};

/// Names the images that the cluster can pull: `*` stands for `operator` and `collector`.
pub const IMAGES_VARIABLE: &str = "KUBEWAKE_E2E_IMAGES";
/// Network policies are additive. The operator's own admit only pods of its namespace, which an API server is
/// not.
const HEALTH_NETWORK_POLICY: &str = "---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: story, namespace: kubewake-system}
spec:
  podSelector: {matchLabels: {app.kubernetes.io/component: collector}}
  policyTypes: [Ingress]
  ingress: [{ports: [{port: 13133, protocol: TCP}]}]
";
/// Name of the Deployment, and the prefix of its pods.
const OPERATOR_DEPLOYMENT: &str = "kubewake-operator";

/// Exclusive use of the cluster that the environment names.
pub(super) struct InClusterOperator {
    manifests: String,
    _turn: MutexGuard<'static, ()>,
}

impl InClusterOperator {
    /// Waits until no other story uses the cluster.
    pub(super) fn wait_for_turn() -> Self {
        static CLUSTER_LOCK: Mutex<()> = Mutex::new(());
        // A story that failed has cleaned up as far as possible; otherwise the next one fails with a message.
        Self { _turn: CLUSTER_LOCK.lock().unwrap_or_else(PoisonError::into_inner), manifests: manifests() }
    }

    /// Installs the operator, and waits until it is ready.
    pub(super) fn install(&self, kubectl: &Kubectl) {
        kubectl.ok_anywhere("apply -f -", &self.manifests);
        self.wait_until_ready(kubectl);
    }

    pub(super) fn start(&self, kubectl: &Kubectl) {
        kubectl
            .run_ok(&format!("scale deployment/{OPERATOR_DEPLOYMENT} --namespace {OPERATOR_NAMESPACE} --replicas=1"));
        self.wait_until_ready(kubectl);
    }

    fn wait_until_ready(&self, kubectl: &Kubectl) {
        kubectl.run_ok(&format!(
            "rollout status deployment/{OPERATOR_DEPLOYMENT} --namespace {OPERATOR_NAMESPACE} --timeout=180s"
        ));
    }

    pub(super) fn stop(&self, kubectl: &Kubectl) {
        kubectl
            .run_ok(&format!("scale deployment/{OPERATOR_DEPLOYMENT} --namespace {OPERATOR_NAMESPACE} --replicas=0"));
        let pods = format!(
            "get pods --namespace {OPERATOR_NAMESPACE} -l app.kubernetes.io/name={OPERATOR_DEPLOYMENT} -o name"
        );
        wait_until("no pod of the operator remains", || kubectl.run_ok(&pods).is_empty());
    }

    pub(super) fn logs(&self, kubectl: &Kubectl) -> String {
        kubectl.run_ok(&format!("logs deployment/{OPERATOR_DEPLOYMENT} --namespace {OPERATOR_NAMESPACE}"))
    }

    /// Removes everything, however far the story came.
    pub(super) fn remove(&self, kubectl: &Kubectl) {
        let pipelines = "tracepipelines,logpipelines,metricpipelines,telemetries";
        kubectl.run(&format!("delete {pipelines} --all --timeout=60s"), "");
        let everything = kubectl.run_anywhere("delete --ignore-not-found --timeout=180s -f -", &self.manifests);
        if everything.code != 0 {
            eprintln!("failed to delete all objects:\n{}", everything.stderr);
        }
    }
}

/// Fails if Kubewake is installed already: it would be removed in the end.
pub(super) fn assert_not_installed(kubectl: &Kubectl) {
    let namespace = format!("namespace {OPERATOR_NAMESPACE}");
    let there = ["crd tracepipelines.telemetry.kubewake.io", &namespace].into_iter().find(|it| kubectl.exists(it));
    assert!(
        there.is_none(),
        "Kubewake is already installed on this cluster ({}). Pipelines are cluster-scoped, so these stories need a cluster without Kubewake. \
         To remove an installation that is not needed, or that an interrupted story left: kubewake operator manifests | kubectl delete --ignore-not-found -f -",
        there.unwrap_or_default()
    );
}

fn manifests() -> String {
    // The names in the manifests, which nodes of the embedded cluster know.
    let images = std::env::var(IMAGES_VARIABLE).unwrap_or_else(|_| format!("{IMAGE_REGISTRY}/*:{VERSION}"));
    let image = |name: &str| images.replace('*', name);
    let images = ["--image", &image("operator"), "--collector-image", &image("collector")];
    let output = kubewake().args(["operator", "manifests"]).args(images).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let changes = [
        ("  replicas: 2\n", "  replicas: 1\n"),
        (
            "      serviceAccountName: kubewake-operator\n",
            "      serviceAccountName: kubewake-operator\n      terminationGracePeriodSeconds: 1\n",
        ),
        (
            "        - --webhook-listen=$(POD_IP):9443\n        - --webhook-service=kubewake-operator\n        - --shutdown-delay-seconds=5\n",
            "        - --identity=story\n",
        ),
    ];
    let text = changes.into_iter().fold(String::from_utf8(output.stdout).unwrap(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "it is elsewhere now: {from}");
        text.replace(from, to)
    });
    text + HEALTH_NETWORK_POLICY
}
