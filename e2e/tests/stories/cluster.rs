//! Somebody runs workloads on the embedded cluster, with `kubectl` and with programs that are not ours.

mod autoscaling;
mod cleanup;
mod logs;
mod node_logs;
mod nodes;
mod restart;
mod rollout;
mod trouble;
mod web;

use std::{net::SocketAddr, panic};

use kubewake_e2e::{Http1Connection, Kubectl, python::python};

/// Python's web server: it serves the files of a ConfigMap on the address of its pod.
const WEB: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: content}
data: {index.html: "first words"}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: web
        image: example/python
        args: ["-u", "-m", "http.server", "--bind", "$(POD_IP)", "--directory", "$(KUBEWAKE_ROOT)/srv", "8080"]
        env:
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: COLOUR, value: blue}
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
        volumeMounts: [{name: content, mountPath: /srv}]
      volumes: [{name: content, configMap: {name: content}}]
"#;

/// A cluster that can run Python and a shell.
fn cluster(args: &[&str]) -> Option<Kubectl> {
    let image = format!("example/python={}", python().display());
    Kubectl::with_nodes(&[&["--image", &image, "--image", "example/shell=/bin/sh"], args].concat())
}

/// A cluster that serves the web page.
fn web() -> Option<Kubectl> {
    let kubectl = cluster(&[])?;
    kubectl.run_ok_with("apply -f -", WEB);
    kubectl.run_ok("rollout status deployment/web --timeout=60s");
    Some(kubectl)
}

/// A pod of a shell that runs this.
fn shell(name: &str, script: &str) -> String {
    let script = script.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {{name: main, image: example/shell, command: ["sh", "-c", "{script}"]}}
"#
    )
}

/// What the web server at this address says, if it answers.
fn page(address: SocketAddr) -> Option<String> {
    let asked = panic::catch_unwind(|| Http1Connection::connect(address).request("GET", "/", &[], b"").text());
    asked.ok()
}

/// Where a Service is.
fn service(kubectl: &Kubectl, name: &str) -> SocketAddr {
    let ip = kubectl.field(&format!("service {name}"), ".spec.clusterIP");
    let port = kubectl.field(&format!("service {name}"), ".spec.ports[0].port");
    format!("{ip}:{port}").parse().unwrap()
}
