//! Under load there are more replicas, and without it fewer.

use kubewake_e2e::wait_until;

use super::cluster;

/// Works hard while its file says so.
const BUSY: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: mood}
data: {mood: busy}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 1
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: example/shell
        command:
        - sh
        - -c
        - while :; do if [ "$(cat $KUBEWAKE_ROOT/mood/mood)" = busy ]; then n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done; else sleep 0.2; fi; done
        resources: {requests: {cpu: 20m}}
        volumeMounts: [{name: mood, mountPath: /mood}]
      volumes: [{name: mood, configMap: {name: mood}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: worker}
spec:
  minReplicas: 1
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}]
  behavior: {scaleDown: {stabilizationWindowSeconds: 1}}
"#;

#[test]
fn replicas_follow_the_load() {
    let Some(kubectl) = cluster(&["--autoscaler-period", "1"]) else { return };
    kubectl.run_ok_with("apply -f -", BUSY);
    kubectl.run_ok("rollout status deployment/worker --timeout=60s");
    wait_until("the Deployment has three replicas", || kubectl.field("deployment worker", ".spec.replicas") == "3");
    let told = kubectl.run_ok("describe hpa worker");
    assert!(told.contains("SuccessfulRescale"), "{told}");
    kubectl.run_ok("patch configmap mood -p {\"data\":{\"mood\":\"idle\"}}");
    wait_until("there is one", || kubectl.field("deployment worker", ".spec.replicas") == "1");
}
