//! Somebody works with `kubectl`, with every command that needs no node.
//!
//! What is asserted is what a person relies on: that a command ends well or not, what it changed, and the few
//! words that scripts look for. How kubectl lays out its tables is its own affair.

mod access;
mod apply;
mod change;
mod custom;
mod delete;
mod read;

/// A Deployment and what usually comes with it. Its pods fit no node, so that nothing happens to them anywhere.
const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {no.such/node: "true"}
      containers:
      - {name: web, image: "nginx:1.27", ports: [{containerPort: 80}], env: [{name: COLOUR, value: blue}]}
      - {name: side, image: "busybox:1"}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {size: "1", shape: round}
"#;

/// A pod that waits for a node for ever.
const LONE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: lone, labels: {app: lone}}
spec:
  nodeSelector: {no.such/node: "true"}
  containers: [{name: main, image: "busybox:1"}]
"#;
