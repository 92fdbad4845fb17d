//! The operator inside of a cluster that was there before the story.
//!
//! It is installed as `kubewake operator manifests` has it, with the rights of its own account, and removed with everything else when the story is over. It does not run beside the
//! story as elsewhere, because it asks collectors by the addresses of their pods. Some things differ from what is printed: there is one replica, it can be ended within a second, it
//! serves no webhook, so that pipelines can be made while it does not run, and the API server may ask collectors how they are, so that stories can.
//!
//! *Assumed*: nobody else has Kubewake there, as pipelines are in no namespace; otherwise a story refuses to begin. Stories of one program take turns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kubewake_release::{IMAGE_REGISTRY, VERSION};

use super::NAMESPACE;
use crate::{Kubectl, eventually, process::kubewake};

/// Names the images that the cluster can pull: `*` stands for `operator` and `collector`.
pub const IMAGES: &str = "KUBEWAKE_E2E_IMAGES";
/// Network policies add up. The operator's own let nobody in but pods beside it, which an API server is not.
const HEALTH: &str = "---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: story, namespace: kubewake-system}
spec:
  podSelector: {matchLabels: {app.kubernetes.io/component: collector}}
  policyTypes: [Ingress]
  ingress: [{ports: [{port: 13133, protocol: TCP}]}]
";
/// The Deployment, and its pods.
const OPERATOR: &str = "kubewake-operator";

/// A cluster that was named, and nobody else's at this time.
pub(super) struct Inside {
    manifests: String,
    _turn: MutexGuard<'static, ()>,
}

impl Inside {
    /// Waits until no other story is there.
    pub(super) fn turn() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        // Who failed has cleaned up as well as it could, and if not the next one says so.
        Self { _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner), manifests: manifests() }
    }

    /// Installs everything, until it works.
    pub(super) fn install(&self, kubectl: &Kubectl) {
        kubectl.ok_anywhere("apply -f -", &self.manifests);
        self.wait(kubectl);
    }

    pub(super) fn start(&self, kubectl: &Kubectl) {
        kubectl.ok(&format!("scale deployment/{OPERATOR} --namespace {NAMESPACE} --replicas=1"));
        self.wait(kubectl);
    }

    fn wait(&self, kubectl: &Kubectl) {
        kubectl.ok(&format!("rollout status deployment/{OPERATOR} --namespace {NAMESPACE} --timeout=180s"));
    }

    pub(super) fn stop(&self, kubectl: &Kubectl) {
        kubectl.ok(&format!("scale deployment/{OPERATOR} --namespace {NAMESPACE} --replicas=0"));
        let pods = format!("get pods --namespace {NAMESPACE} -l app.kubernetes.io/name={OPERATOR} -o name");
        eventually("no operator runs", || kubectl.ok(&pods).is_empty());
    }

    pub(super) fn said(&self, kubectl: &Kubectl) -> String {
        kubectl.ok(&format!("logs deployment/{OPERATOR} --namespace {NAMESPACE}"))
    }

    /// Removes everything, however far a story came.
    pub(super) fn remove(&self, kubectl: &Kubectl) {
        let pipelines = "tracepipelines,logpipelines,metricpipelines,telemetries";
        kubectl.run(&format!("delete {pipelines} --all --timeout=60s"), "");
        let everything = kubectl.run_anywhere("delete --ignore-not-found --timeout=180s -f -", &self.manifests);
        if everything.code != 0 {
            eprintln!("not everything could be removed:\n{}", everything.stderr);
        }
    }
}

/// What is removed in the end must not be somebody else's.
pub(super) fn refuse_unless_alone(kubectl: &Kubectl) {
    let namespace = format!("namespace {NAMESPACE}");
    let there = ["crd tracepipelines.telemetry.kubewake.io", &namespace].into_iter().find(|it| kubectl.exists(it));
    assert!(
        there.is_none(),
        "Kubewake is on this cluster already ({}). Pipelines are in no namespace, so that these stories want a cluster without it. \
         If nobody needs it, or a story was interrupted: kubewake operator manifests | kubectl delete --ignore-not-found -f -",
        there.unwrap_or_default()
    );
}

fn manifests() -> String {
    // As the manifests call them, and as nodes of the embedded cluster know them.
    let images = std::env::var(IMAGES).unwrap_or_else(|_| format!("{IMAGE_REGISTRY}/*:{VERSION}"));
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
    text + HEALTH
}
