//! Somebody's program uses the Kubernetes client for Python.

use kubewake_e2e::{ClusterUnderTest, python};

#[test]
fn the_documented_examples_work() {
    let cluster = ClusterUnderTest::start();
    let kubeconfig = cluster.kubeconfig().to_str().unwrap();
    let done = python::run("kubernetes_client.py", &[kubeconfig, &cluster.unique_name()]);
    let done: Vec<&str> = done.as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    assert_eq!(done.len(), 14, "{done:?}");
}
