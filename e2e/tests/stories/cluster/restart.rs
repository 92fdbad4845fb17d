//! A cluster that keeps its data is stopped in the middle of everything, and goes on.

use kubewake_e2e::wait_until;

use super::{cluster, shell};

const DB: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
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
"#;

#[test]
fn it_stops_whatever_its_pods_are_at_and_goes_on_with_them() {
    let Some(mut kubectl) = cluster(&["--data-dir", "./data"]) else { return };
    kubectl.run_ok_with("apply -f -", DB);
    kubectl.run_ok_with("apply -f -", &shell("crasher", "exit 3"));
    kubectl.run_ok_with("apply -f -", &(shell("done", "echo all is done") + "  restartPolicy: Never\n"));
    kubectl.run_ok_with("apply -f -", &shell("server", "trap 'exit 5' TERM; echo serving; sleep 600 & wait"));
    kubectl.run_ok("run stranger --image=nobody/knows");
    let needy = shell("needy", "true").replace("command:", "envFrom: [{secretRef: {name: absent}}], command:");
    kubectl.run_ok_with("apply -f -", &needy);
    kubectl.run_ok("rollout status statefulset/db --timeout=60s");
    let claims = kubectl.run_ok("get persistentvolumeclaims");
    assert!(["Bound", "pvc-", "1Mi", "RWO"].iter().all(|word| claims.contains(word)), "{claims}");
    let name = format!("{}/data-db-0", kubectl.namespace());
    assert!(kubectl.run_ok("get persistentvolumes").contains(&name));
    wait_until("all pods have their final state", || {
        let pods = kubectl.run_ok("get pods");
        let all = ["CrashLoopBackOff", "Completed", "ImagePull", "CreateContainerConfigError"];
        all.iter().all(|state| pods.contains(state))
    });
    wait_until("the first run", || kubectl.run_ok("logs db-0").trim() == "1");
    wait_until("it serves", || kubectl.run("logs server", "").stdout == "serving\n");
    let address = kubectl.field("service db", ".spec.clusterIP");

    kubectl.process().signal("TERM");
    assert!(kubectl.process().wait_for_exit().success());
    kubectl.restart();
    assert_eq!(kubectl.field("service db", ".spec.clusterIP"), address);
    wait_until("the pod runs again with its volume", || kubectl.run("logs db-0", "").stdout.trim() == "2");
    assert_eq!(kubectl.field("pod done", ".status.phase"), "Succeeded", "what had ended stays so");
    assert_eq!(kubectl.run_ok("logs done"), "all is done\n", "and can be read");
    assert_eq!(kubectl.run_ok("logs db-0 --previous").trim(), "1");
    kubectl.run_ok("wait --for=condition=Ready pod/server --timeout=60s");
    let last = kubectl.json("pod server")["status"]["containerStatuses"][0]["lastState"]["terminated"].clone();
    assert_eq!((&last["exitCode"], &last["reason"]), (&5.into(), &"Error".into()), "{last}");
    kubectl.run_ok("delete pod done --timeout=60s");
    assert!(kubectl.run_failing("logs done").contains("not found"));
}
