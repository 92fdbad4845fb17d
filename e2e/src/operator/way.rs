//! How a story reaches collectors.
//!
//! On a cluster of this machine, pods and Services have addresses of its loopback interface. Those of other clusters lead nowhere from here, and the API server's proxy is the way: to the Service by
//! OTLP over HTTP, and to a pod's `/status`. (`kubectl port-forward` is none, as it leads to the loopback interface of a pod, and collectors listen at their pod's address alone.)

use std::{
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
};

use serde_json::Value;

use super::{NAMESPACE, Operated};
use crate::{Load, http, load::Report, process::Process};

#[cfg(test)]
mod tests;

/// `kubectl proxy`, once somebody needs it.
#[derive(Default)]
pub(super) struct Way(OnceLock<(Process, SocketAddr)>);

impl Operated {
    /// Sends to the end, by whatever way there is.
    pub fn send(&self, args: &[&str]) -> Report {
        self.sending(args).finish()
    }

    /// Begins to send.
    pub fn sending(&self, args: &[&str]) -> Load {
        let service = self.otlp();
        if service.ip().is_loopback() {
            return Load::start("grpc", service, args);
        }
        let (_, api) = self.way.0.get_or_init(|| self.kubectl.proxy());
        sending_by(*api, args)
    }

    /// The address of each of the collectors' pods.
    pub fn addresses(&self) -> Vec<(String, IpAddr)> {
        let pods = self.kubectl.json(&format!("pods --namespace {NAMESPACE} -l app.kubernetes.io/component=collector"));
        let address = |pod: &Value| {
            Some((pod["metadata"]["name"].as_str()?.to_owned(), pod["status"]["podIP"].as_str()?.parse().ok()?))
        };
        pods["items"].as_array().unwrap().iter().filter_map(address).collect()
    }

    /// What each collector says of itself.
    pub fn collectors(&self) -> Vec<Value> {
        let ask = |(name, address): (String, IpAddr)| {
            if address.is_loopback() {
                return http::get((address, 13133).into(), "/status").json();
            }
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}:13133/proxy/status");
            serde_json::from_str(&self.kubectl.ok(&format!("get --raw {path}"))).expect("a collector answers in JSON")
        };
        self.addresses().into_iter().map(ask).collect()
    }
}

/// Sends through an API server that asks for no credentials.
fn sending_by(api: SocketAddr, args: &[&str]) -> Load {
    let service = format!("api/v1/namespaces/{NAMESPACE}/services/kubewake-otlp:otlp-http/proxy");
    let signal = args.iter().skip_while(|arg| **arg != "--signal").nth(1).unwrap_or(&"traces");
    Load::start_to("http", &format!("http://{api}/{service}/v1/{signal}"), args)
}
