//! Several nodes, sets that need them, and accounts that may do what they may.

use kubewake_e2e::wait_until;

use super::{cluster, shell};

#[test]
fn a_daemon_runs_everywhere_and_replicas_are_spread() {
    let Some(kubectl) = cluster(&["--nodes", "3"]) else { return };
    assert_eq!(kubectl.run_ok("get nodes -o name").lines().count(), 3);
    kubectl.run_ok("wait --for=condition=Ready nodes --all --timeout=60s");
    kubectl.run_ok_with(
        "apply -f -",
        r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: example/shell, command: [sh, -c, "exec sleep 600"]}]
"#,
    );
    kubectl.run_ok("rollout status daemonset/agent --timeout=60s");
    let mut nodes: Vec<String> =
        kubectl.field("pods -l app=agent", ".items[*].spec.nodeName").split(' ').map(str::to_owned).collect();
    nodes.sort();
    assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
    kubectl.run_ok("delete daemonset agent");
    wait_until("all pods are deleted", || kubectl.run_ok("get pods -o name").is_empty());
}

#[test]
fn a_stateful_set_keeps_names_and_files() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.run_ok_with(
        "apply -f -",
        r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: example/shell
        command: [sh, -c, "echo run >> $KUBEWAKE_ROOT/data/runs; wc -l < $KUBEWAKE_ROOT/data/runs; exec sleep 600"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
"#,
    );
    kubectl.run_ok("rollout status statefulset/db --timeout=60s");
    assert_eq!(kubectl.run_ok("get pods -o name"), "pod/db-0\npod/db-1\n");
    wait_until("the first run", || kubectl.run_ok("logs db-1").trim() == "1");
    kubectl.run_ok("delete pod db-1");
    wait_until("the pod is ready again", || {
        kubectl.run("wait --for=condition=Ready pod/db-1 --timeout=10s", "").code == 0
    });
    wait_until("it finds its file", || kubectl.run_ok("logs db-1").trim() == "2");
    assert_eq!(kubectl.field("pvc data-db-1", ".status.phase"), "Bound");
}

#[test]
fn an_account_may_do_what_it_may() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.run_ok("create serviceaccount reader");
    kubectl.run_ok("create role reader --verb=get,list --resource=configmaps");
    kubectl.run_ok(&format!("create rolebinding reader --role=reader --serviceaccount={}:reader", kubectl.namespace()));
    kubectl.run_ok("create configmap seen --from-literal=a=b");
    let script = "kubectl get configmap seen -o name && kubectl get secrets; echo done";
    let pod =
        shell("client", script).replace("spec:\n", "spec:\n  serviceAccountName: reader\n  restartPolicy: Never\n");
    kubectl.run_ok_with("apply -f -", &pod);
    wait_until("the client has finished its requests", || kubectl.run("logs client", "").stdout.contains("done"));
    let said = kubectl.run_ok("logs client");
    assert!(said.contains("configmap/seen"), "{said}");
    assert!(said.contains("cannot list resource \"secrets\"") && said.contains(":reader\""), "{said}");
}
