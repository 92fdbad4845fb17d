//! Attacks on the embedded node: pods that get more than their manifest asks for.

use std::process::Command;

use kubewake_e2e::{Kubectl, wait_until};

/// A pod whose one container leaves a file behind, with these security contexts of the pod and of the container.
fn pod(kubectl: &Kubectl, name: &str, of_pod: &str, own: &str) -> String {
    let mark = kubectl.cluster().folder().join(name);
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  securityContext: {of_pod}\n  containers:\n  \
         - name: main\n    image: example/shell\n    securityContext: {own}\n    \
         command: [sh, -c, 'echo ran > {} && exec sleep 600']\n",
        mark.display()
    )
}

fn has_run(kubectl: &Kubectl, pod: &str) -> bool {
    kubectl.cluster().folder().join(pod).exists()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    String::from_utf8_lossy(&id.stdout).trim() == "0"
}

#[test]
fn pod_that_must_not_run_as_root_does_not_start_as_root() {
    let Some(mut kubectl) = Kubectl::with_nodes(&["--image", "example/shell=/bin/sh"]) else { return };
    let refused = |kubectl: &Kubectl, name: &str, words: &str| {
        wait_until("the pod is refused in the kubelet's words", || {
            let waiting = kubectl.field(&format!("pod {name}"), ".status.containerStatuses[0].state.waiting");
            waiting.contains("CreateContainerConfigError") && waiting.contains(words)
        });
        assert!(!has_run(kubectl, name), "{name} has run");
    };
    let breaks = "container's runAsUser breaks non-root policy";
    for (name, of_pod, own) in [
        ("container-user", "{runAsNonRoot: true}", "{runAsUser: 0}"),
        ("pod-user", "{runAsUser: 0}", "{runAsNonRoot: true}"),
    ] {
        kubectl.run_ok_with("apply -f -", &pod(&kubectl, name, of_pod, own));
        refused(&kubectl, name, breaks);
    }
    kubectl.run_ok_with("apply -f -", &pod(&kubectl, "image-user", "{runAsNonRoot: true}", "{}"));
    // Nobody is told to run as somebody else without being told that it is not so.
    kubectl.run_ok_with("apply -f -", &pod(&kubectl, "other-user", "{runAsNonRoot: true, runAsUser: 65532}", "{}"));
    kubectl.run_ok("wait --for=condition=Ready pod/other-user --timeout=60s");
    wait_until("an event says that the user is another one", || {
        kubectl.run_ok("describe pod other-user").contains("runAsUser 65532 of container main is not enforced")
    });
    if is_root() {
        refused(&kubectl, "image-user", "container has runAsNonRoot and image will run as root");
        let said = kubectl.process().stderr();
        assert!(said.contains("the cluster runs as root"), "{said}");
    } else {
        kubectl.run_ok("wait --for=condition=Ready pod/image-user --timeout=60s");
    }
}
