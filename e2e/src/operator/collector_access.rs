//! How a story reaches collectors.
//!
//! On a cluster of this machine, pods and Services have addresses of its loopback interface. Those of other
//! clusters are not reachable from here, so the API server's proxy is used: to the Service by OTLP over HTTP,
//! and to a pod's `/status`. (`kubectl port-forward` does not help: it connects to the loopback interface of a
//! pod, while collectors listen at the pod's address only.)

use std::{
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
};

use serde_json::Value;

use super::{OPERATOR_NAMESPACE, OperatorCluster};
use crate::{LoadGenerator, http, load::LoadReport, process::ChildProcess};

#[cfg(test)]
mod tests;

/// `kubectl proxy`, started on first use.
#[derive(Default)]
pub(super) struct CollectorAccess(OnceLock<(ChildProcess, SocketAddr)>);

impl OperatorCluster {
    /// Sends a whole run, directly or through the proxy.
    pub fn send(&self, args: &[&str]) -> LoadReport {
        self.start_sending(args).finish()
    }

    pub fn start_sending(&self, args: &[&str]) -> LoadGenerator {
        let service = self.otlp();
        if service.ip().is_loopback() {
            return LoadGenerator::start("grpc", service, args);
        }
        let (_, api) = self.collector_access.0.get_or_init(|| self.kubectl.proxy());
        start_sending_through_api_server(*api, args)
    }

    /// Name and address of each collector pod.
    pub fn addresses(&self) -> Vec<(String, IpAddr)> {
        let pods = self
            .kubectl
            .json(&format!("pods --namespace {OPERATOR_NAMESPACE} -l app.kubernetes.io/component=collector"));
        let address = |pod: &Value| {
            Some((pod["metadata"]["name"].as_str()?.to_owned(), pod["status"]["podIP"].as_str()?.parse().ok()?))
        };
        pods["items"].as_array().unwrap().iter().filter_map(address).collect()
    }

    /// The status of each collector.
    pub fn collector_statuses(&self) -> Vec<Value> {
        let ask = |(name, address): (String, IpAddr)| {
            if address.is_loopback() {
                return http::get((address, 13133).into(), "/status").json();
            }
            let path = format!("/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{name}:13133/proxy/status");
            serde_json::from_str(&self.kubectl.run_ok(&format!("get --raw {path}")))
                .expect("the collector's status is JSON")
        };
        self.addresses().into_iter().map(ask).collect()
    }
}

/// Sends through an API server that asks for no credentials.
fn start_sending_through_api_server(api: SocketAddr, args: &[&str]) -> LoadGenerator {
    let service = format!("api/v1/namespaces/{OPERATOR_NAMESPACE}/services/kubewake-otlp:otlp-http/proxy");
    let signal = args.iter().skip_while(|arg| **arg != "--signal").nth(1).unwrap_or(&"traces");
    LoadGenerator::start_to("http", &format!("http://{api}/{service}/v1/{signal}"), args)
}
