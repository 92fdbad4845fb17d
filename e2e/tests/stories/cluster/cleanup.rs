//! Nothing is left of a cluster, however it ends.

use std::{fs, path::Path};

use kubewake_e2e::{Kubectl, wait_for, wait_until};

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

/// A script that starts somebody who keeps nothing of it: no session, no environment, no open file, no
/// directory and no parent. Its id is in the file `hidden` of the story.
fn hides(kubectl: &Kubectl) -> String {
    let file = kubectl.cluster().folder().join("hidden");
    let hidden = format!("echo $$$$ >{}; cd /; exec sleep 600 </dev/null >/dev/null 2>&1", file.display());
    format!("(setsid env -i /bin/sh -c '{hidden}' &); trap 'exit 0' TERM; sleep 600 & wait")
}

/// The process that hides, once it does.
fn hidden(kubectl: &Kubectl) -> String {
    let file = kubectl.cluster().folder().join("hidden");
    wait_for("the child process runs", || {
        let id = fs::read_to_string(&file).ok()?.trim().to_owned();
        let command = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        command.starts_with("sleep\0").then_some(id)
    })
}

/// Whether it does not run. Its parent may not have noticed.
fn is_gone(id: &str) -> bool {
    fs::read_to_string(format!("/proc/{id}/cmdline")).map_or(true, |command| command.is_empty())
}

#[test]
fn who_hides_goes_with_its_pod() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.run_ok_with("apply -f -", &shell("parent", &hides(&kubectl)));
    let id = hidden(&kubectl);
    kubectl.run_ok("delete pod parent --timeout=60s");
    assert!(is_gone(&id));
}

#[test]
fn who_hides_goes_with_the_cluster_however_it_ends() {
    for signal in ["TERM", "KILL"] {
        let Some(mut kubectl) = cluster(&[]) else { return };
        kubectl.run_ok_with("apply -f -", &shell("parent", &hides(&kubectl)));
        let id = hidden(&kubectl);
        kubectl.process().signal(signal);
        kubectl.process().wait_for_exit();
        wait_until("nothing is left", || is_gone(&id) && left(&kubectl).is_empty());
    }
}

#[test]
fn nothing_is_left_after_a_kill() {
    let Some(mut kubectl) = web() else { return };
    // A child of a child, in a session of its own.
    kubectl.run_ok_with("apply -f -", &shell("parent", "setsid sleep 600 & exec sleep 600"));
    kubectl.run_ok("wait --for=condition=Ready pod/parent --timeout=60s");
    let folder = kubectl.cluster().folder().to_owned();
    wait_until("all processes run", || processes(&folder) >= 5);
    assert_eq!(left(&kubectl).len(), 1);
    kubectl.process().signal("KILL");
    wait_until("no process is left", || processes(&folder) == 0);
    wait_until("no file is left", || left(&kubectl).is_empty());
}

#[test]
fn nothing_is_left_after_a_stop() {
    let Some(mut kubectl) = web() else { return };
    let folder = kubectl.cluster().folder().to_owned();
    kubectl.process().signal("TERM");
    assert!(kubectl.process().wait_for_exit().success());
    assert_eq!(processes(&folder), 0);
    assert!(left(&kubectl).is_empty(), "{:?}", left(&kubectl));
}

#[test]
fn a_pod_that_ignores_signals_is_killed_with_its_children() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.run_ok_with(
        "apply -f -",
        &shell("stubborn", "trap '' TERM; (trap '' TERM; sleep 600) & while :; do sleep 1; done"),
    );
    kubectl.run_ok("wait --for=condition=Ready pod/stubborn --timeout=60s");
    kubectl.run_ok("delete pod stubborn --timeout=60s");
    wait_until("no process is left", || processes(kubectl.cluster().folder()) == 0);
}
