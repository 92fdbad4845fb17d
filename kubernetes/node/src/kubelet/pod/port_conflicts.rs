//! Hints for programs that cannot listen: a pod that listens on all addresses occupies the port for all others.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;

use super::container_run::ContainerRun;
use crate::{controller::pods::condition, kubelet::status::WILDCARD_BIND_CONDITION};

/// Error messages of programs whose address is in use, in lower case.
const ADDRESS_IN_USE_MESSAGES: [&str; 3] = ["address already in use", "address in use", "eaddrinuse"];

impl ContainerRun<'_> {
    /// Reports the pods that may occupy a port of this container, if its log tail says so.
    pub(super) fn report_port_conflicts(&self, words: &str) {
        let worker = self.worker;
        let others = worker.node.informers.pods.all().into_iter().filter(|pod| pod.uid().as_ref() != Some(&worker.uid));
        for note in conflicting_pods(self.container, words, others) {
            worker.record_warning(&self.container.name, "PortTaken", note);
        }
    }
}

/// Considers all pods of the machine, on any node.
fn conflicting_pods(container: &Container, words: &str, others: impl Iterator<Item = Arc<Pod>>) -> Vec<String> {
    let words = words.to_lowercase();
    let says_so = ADDRESS_IN_USE_MESSAGES.iter().any(|taken| words.contains(taken));
    let own: BTreeSet<i32> = container.ports.iter().flatten().map(|port| port.container_port).collect();
    let wants = |port: u16| if own.is_empty() { says_so } else { own.contains(&i32::from(port)) };
    let mut told = Vec::new();
    for pod in others {
        let found = condition(&pod, WILDCARD_BIND_CONDITION).filter(|condition| condition.status == "True");
        let Some(message) = found.and_then(|condition| condition.message.as_deref()) else { continue };
        let ports = message.split([' ', ',']).filter_map(|word| Some(word.parse::<SocketAddr>().ok()?.port()));
        if let Some(port) = ports.into_iter().find(|port| wants(*port)) {
            let namespace = pod.namespace().unwrap_or_default();
            let name = pod.name_any();
            told.push(format!("Port {port} may be taken by pod {namespace}/{name}: {message}"));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubelet::status::wildcard_message;

    fn greedy(holds: &str) -> Arc<Pod> {
        let addresses = BTreeSet::from(["0.0.0.0:8080".parse().unwrap(), "[::]:9090".parse().unwrap()]);
        let message = wildcard_message("main", &addresses);
        let conditions = json!([{"type": WILDCARD_BIND_CONDITION, "status": holds, "message": message}]);
        let metadata = json!({"namespace": "shop", "name": "greedy"});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap())
    }

    fn told(port: Option<i32>, words: &str, holds: &str) -> Vec<String> {
        let ports: Vec<_> = port.into_iter().map(|port| json!({"containerPort": port})).collect();
        let container = serde_json::from_value(json!({"name": "web", "ports": ports})).unwrap();
        conflicting_pods(&container, words, [greedy(holds)].into_iter())
    }

    #[test]
    fn who_has_the_port_is_named() {
        let words = "OSError: [Errno 98] Address already in use";
        for (port, words, named) in
            [(Some(9090), "", 9090), (Some(8080), words, 8080), (None, words, 8080), (None, "Error: EADDRINUSE", 8080)]
        {
            let told = told(port, words, "True");
            let wanted =
                format!("Port {named} may be taken by pod shop/greedy: Container main listens on 0.0.0.0:8080");
            assert!(told.len() == 1 && told[0].starts_with(&wanted), "{told:?}");
        }
    }

    #[test]
    fn nobody_is_blamed_for_another_failure() {
        assert!(told(Some(80), "Address already in use", "True").is_empty());
        assert!(told(None, "no such file", "True").is_empty());
        assert!(told(Some(8080), "Address already in use", "False").is_empty());
    }
}
