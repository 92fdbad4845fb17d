//! Probes of a container: startup, readiness and liveness.
//!
//! A [`ProbeChecker`] checks once; a [`Prober`] repeats the check and counts, as the kubelet does. The messages
//! are the kubelet's, so that they can follow `Readiness probe failed: `.
//!
//! *Guaranteed*: a check ends within the probe's `timeoutSeconds` and reads a bounded response. Its processes
//! and connections are gone when it ends or is dropped. *Assumed*: the address of the target is local. *Not
//! done*: HTTP proxies; verification of certificates, which the kubelet does not do either.

mod dial;
mod exec;
pub(crate) mod grpc;
pub(crate) mod http;
mod prober;
mod tls;

use std::{fmt, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::Probe, apimachinery::pkg::util::intstr::IntOrString};

use crate::process_tags::ContainerTag;

pub use self::{
    exec::{CommandExit, run_command},
    http::send_hook_request,
    prober::{ProbeKind, ProbeOutcome, Prober},
};

/// The kubelet's user agent, with the reported version of Kubernetes.
const USER_AGENT: &str = "kube-probe/1.35";

/// The limit for responses and for the output of commands: the kubelet's value.
const MAX_RESPONSE_BYTES: usize = 10 << 10;

/// The container to check. It may be shared by its probes and hooks.
#[derive(Clone)]
pub struct ProbeTarget {
    pub ip: IpAddr,
    /// The named ports of the container.
    pub ports: Vec<(String, u16)>,
    /// The whole environment of the container, in which commands run.
    pub env: Vec<(String, String)>,
    pub dir: PathBuf,
    /// The tag of all processes of the container.
    pub tag: ContainerTag,
}

/// Omits the environment, which may hold secrets.
impl fmt::Debug for ProbeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("ip", &self.ip).field("ports", &self.ports).finish_non_exhaustive()
    }
}

impl ProbeTarget {
    /// Resolves a port that is given by name or number.
    fn resolve_port(&self, port: &IntOrString) -> Result<u16, ProbeError> {
        let number = match port {
            IntOrString::Int(number) => u16::try_from(*number).ok(),
            IntOrString::String(name) => {
                let named = self.ports.iter().find(|(held, _)| held == name).map(|(_, number)| *number);
                named.or_else(|| name.parse().ok())
            }
        };
        let shown = match port {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(name) => format!("{name:?}"),
        };
        let unknown = || ProbeError::Errored(format!("couldn't find port {shown} in the container"));
        number.filter(|number| *number > 0).ok_or_else(unknown)
    }
}

/// The reason why a check did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The container is unhealthy.
    #[error("{0}")]
    Failed(String),
    /// The check was not possible, such as for an unknown port. This says nothing about the container.
    #[error("{0}")]
    Errored(String),
}

impl From<String> for ProbeError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Performs single checks. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct ProbeChecker {
    tls: Arc<tls::UnverifiedTls>,
}

impl ProbeChecker {
    /// Checks once. The error is the kubelet's message.
    pub async fn check(&self, probe: &Probe, target: &ProbeTarget) -> Result<(), ProbeError> {
        let limit = seconds_or(probe.timeout_seconds, 1);
        if let Some(exec) = &probe.exec {
            exec::check_command(exec.command.as_deref().unwrap_or_default(), target, limit).await
        } else if let Some(action) = &probe.http_get {
            http::check_http(action, target, &self.tls, limit).await
        } else if let Some(action) = &probe.tcp_socket {
            let host = host_or_pod_ip(action.host.as_deref(), target);
            let port = target.resolve_port(&action.port)?;
            Ok(dial::dial_tcp(&host, port, limit).await.map(drop)?)
        } else if let Some(action) = &probe.grpc {
            let port = target.resolve_port(&IntOrString::Int(action.port))?;
            Ok(grpc::check_health(target.ip, port, action.service.as_deref().unwrap_or_default(), limit).await?)
        } else {
            Err(ProbeError::Errored("missing probe handler: give one of exec, httpGet, tcpSocket and grpc".to_owned()))
        }
    }
}

/// The host of the action, or the address of the pod.
fn host_or_pod_ip(named: Option<&str>, target: &ProbeTarget) -> String {
    named.filter(|host| !host.is_empty()).map_or_else(|| target.ip.to_string(), str::to_owned)
}

/// A number of seconds of a probe. The API server admits only valid ones.
fn seconds_or(given: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(given.and_then(|given| u64::try_from(given).ok()).filter(|given| *given > 0).unwrap_or(default))
}

#[cfg(test)]
mod tests;
