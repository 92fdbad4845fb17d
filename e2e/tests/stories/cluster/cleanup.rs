//! Nothing is left of a cluster, however it ends.

use std::{fs, path::Path};

use kubewake_e2e::{Kubectl, eventually};

use super::{cluster, shell, web};

/// The processes whose environment names this folder.
fn processes(folder: &Path) -> usize {
    let folder = folder.to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| fs::read(entry.path().join("environ")).ok())
        .filter(|environment| {
            String::from_utf8_lossy(environment)
                .split('\0')
                .any(|variable| variable.starts_with("KUBEWAKE_ROOT=") && variable.contains(&folder))
        })
        .count()
}

/// What is in the folder of the story beside the kubeconfig.
fn left(kubectl: &Kubectl) -> Vec<String> {
    let entries = fs::read_dir(kubectl.cluster().folder()).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("kubewake-"))
        .collect()
}

#[test]
fn nothing_is_left_after_a_kill() {
    let Some(mut kubectl) = web() else { return };
    // A child of a child, in a session of its own.
    kubectl.ok_with("apply -f -", &shell("parent", "setsid sleep 600 & exec sleep 600"));
    kubectl.ok("wait --for=condition=Ready pod/parent --timeout=60s");
    let folder = kubectl.cluster().folder().to_owned();
    eventually("all run", || processes(&folder) >= 5);
    assert_eq!(left(&kubectl).len(), 1);
    kubectl.process().signal("KILL");
    eventually("no process is left", || processes(&folder) == 0);
    eventually("no file is left", || left(&kubectl).is_empty());
}

#[test]
fn nothing_is_left_after_a_stop() {
    let Some(mut kubectl) = web() else { return };
    let folder = kubectl.cluster().folder().to_owned();
    kubectl.process().signal("TERM");
    assert!(kubectl.process().wait().success());
    assert_eq!(processes(&folder), 0);
    assert!(left(&kubectl).is_empty(), "{:?}", left(&kubectl));
}

#[test]
fn a_pod_that_ignores_signals_is_killed_with_its_children() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.ok_with(
        "apply -f -",
        &shell("stubborn", "trap '' TERM; (trap '' TERM; sleep 600) & while :; do sleep 1; done"),
    );
    kubectl.ok("wait --for=condition=Ready pod/stubborn --timeout=60s");
    kubectl.ok("delete pod stubborn --timeout=60s");
    eventually("no process is left", || processes(kubectl.cluster().folder()) == 0);
}
