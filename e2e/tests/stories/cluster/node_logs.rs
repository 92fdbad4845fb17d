//! A log agent reads the files of its node, and people read the same logs across rotations.

use std::path::{Path, PathBuf};

use kubewake_e2e::{Kubectl, wait_until};

use super::{cluster, shell};

/// An agent as on any cluster: on every node, whatever its taints, with the logs and a directory of its own. It
/// prints the first entry that it finds of a pod, with the path, and stores it as its state.
const AGENT: &str = r#"
apiVersion: v1
kind: Namespace
metadata:
  name: agents
  labels: {pod-security.kubernetes.io/enforce: privileged}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: agents}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: [{operator: Exists}]
      initContainers:
      - name: state
        image: example/shell
        command: [sh, -c, "chmod 700 $KUBEWAKE_ROOT/var/lib/agent"]
        volumeMounts: [{name: state, mountPath: /var/lib/agent}]
      containers:
      - name: agent
        image: example/shell
        command:
        - sh
        - -c
        - |
          cd $KUBEWAKE_ROOT/var/log/pods
          until grep -s "order" SHOP_talker_*/main/0.log /dev/null > $KUBEWAKE_ROOT/var/lib/agent/found; do sleep 0.1; done
          cat $KUBEWAKE_ROOT/var/lib/agent/found
          exec sleep 600
        securityContext: {readOnlyRootFilesystem: true}
        volumeMounts:
        - {name: logs, mountPath: /var/log/pods, readOnly: true}
        - {name: state, mountPath: /var/lib/agent}
      volumes:
      - {name: logs, hostPath: {path: /var/log/pods}}
      - {name: state, hostPath: {path: /var/lib/agent, type: DirectoryOrCreate}}
"#;

#[test]
fn agent_on_each_node_finds_the_logs_of_its_node() {
    let Some(kubectl) = cluster(&["--nodes", "2"]) else { return };
    kubectl.ok_anywhere("taint nodes --all team=shop:NoSchedule", "");
    let tolerant = "spec:\n  tolerations: [{key: team, operator: Exists}]\n";
    kubectl.run_ok_with("apply -f -", &shell("talker", "echo an order; exec sleep 600").replace("spec:\n", tolerant));
    kubectl.ok_anywhere("apply -f -", &AGENT.replace("SHOP", kubectl.namespace()));
    kubectl.ok_anywhere("rollout status daemonset/agent --namespace agents --timeout=60s", "");
    let uid = kubectl.field("pod talker", ".metadata.uid");
    let node = kubectl.field("pod talker", ".spec.nodeName");
    let agents = |node: &str| {
        let agent = format!("get pods --namespace agents --field-selector spec.nodeName={node} -o name");
        kubectl.ok_anywhere(&agent, "").trim().to_owned()
    };
    let near = agents(&node);
    let read = |agent: &str| kubectl.run_anywhere(&format!("logs --namespace agents {agent}"), "").stdout;
    wait_until("the agent of the same node has found the entry", || read(&near).ends_with("an order\n"));
    let found = read(&near);
    let path = format!("{}_talker_{uid}/main/0.log:20", kubectl.namespace());
    assert!(found.starts_with(&path) && found.ends_with("Z stdout F an order\n"), "{found}");
    let far = agents(if node == "node-1" { "node-2" } else { "node-1" });
    assert_eq!(read(&far), "", "each node has its own logs");
    let state = kubectl.cluster().folder();
    let states = find(state, &|path| path.ends_with("var/lib/agent/found"));
    assert_eq!(states.len(), 2, "each node has its own state: {states:?}");
    // The directory goes with the pod.
    let logs = || {
        find(state, &|path| path.to_string_lossy().contains(&format!("var/log/pods/{}_talker", kubectl.namespace())))
    };
    assert_eq!(logs().len(), 1);
    kubectl.run_ok("delete pod talker --timeout=60s");
    wait_until("the logs of the pod are removed", || logs().is_empty());
}

#[test]
fn rotated_logs_are_read_and_followed_as_one() {
    let Some(kubectl) = cluster(&["--container-log-max-size", "32Ki", "--container-log-monitor-interval", "1"]) else {
        return;
    };
    let script = "i=0; for part in 1 2 3; do \
                  while [ $i -lt $((part * 500)) ]; do i=$((i+1)); echo order $i of a shop that sells quite some things; done; \
                  sleep 1.5; done; echo the end; exec sleep 600";
    kubectl.run_ok_with("apply -f -", &shell("busy", script));
    kubectl.run_ok("wait --for=condition=Ready pod/busy --timeout=60s");
    let follower = kubectl.follow("logs -f busy");
    wait_until("the pod has printed all lines", || kubectl.run_ok("logs busy --tail=1") == "the end\n");
    let expected: String =
        (1..=1500).map(|number| format!("order {number} of a shop that sells quite some things\n")).collect();
    let expected = expected + "the end\n";
    wait_until("the follower has printed all lines", || follower.stdout().ends_with("the end\n"));
    assert_eq!(follower.stdout(), expected);
    let names = rotated(&kubectl);
    assert!(names.iter().any(|name| name.ends_with(".gz")), "{names:?}");
    assert_eq!(kubectl.run_ok("logs busy"), expected);
    let tail: String = expected.split_inclusive('\n').skip(1501 - 1200).collect();
    assert_eq!(kubectl.run_ok("logs busy --tail=1200"), tail);
    assert!(kubectl.run_ok("logs busy --since=1h --timestamps --limit-bytes=80").contains("Z order 1 of a shop"));
}

/// The names of the rotated files of all containers.
fn rotated(kubectl: &Kubectl) -> Vec<String> {
    let files = find(kubectl.cluster().folder(), &|path| path.to_string_lossy().contains("/0.log."));
    files.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn container_that_logs_twenty_megabytes_a_second_costs_no_memory() {
    let Some(mut kubectl) = cluster(&["--container-log-monitor-interval", "1"]) else { return };
    kubectl.run_ok_with("apply -f -", &shell("quiet", "echo quiet; exec sleep 600"));
    kubectl.run_ok("wait --for=condition=Ready pod/quiet --timeout=60s");
    let before = kubectl.process().peak_mib();
    let line = "x".repeat(99);
    // Two megabytes each tenth of a second.
    let script =
        format!("i=0; while [ $i -lt 40 ]; do i=$((i+1)); yes {line} | head -c 2000000; sleep 0.1; done; echo the end");
    kubectl.run_ok_with("apply -f -", &(shell("fast", &script) + "  restartPolicy: Never\n"));
    wait_until("it has printed everything", || kubectl.field("pod fast", ".status.phase") == "Succeeded");
    assert_eq!(kubectl.run_ok("logs fast --tail=1"), "the end\n");
    let after = kubectl.process().peak_mib();
    assert!(after < before + 32, "{before} MiB before, {after} MiB after 80 MB of logs");
    assert!(!rotated(&kubectl).is_empty());
}

/// All files and directories below a folder that match, but nothing below a match.
fn find(folder: &Path, matches: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    // Links in the roots of containers lead to the same files.
    let entries = entries.filter(|path| !path.is_symlink());
    entries.flat_map(|path| if matches(&path) { vec![path] } else { find(&path, matches) }).collect()
}
