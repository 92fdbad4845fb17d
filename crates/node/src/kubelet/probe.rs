//! Whether a container is well: what its startup, readiness and liveness probes say.
//!
//! A [`Checker`] looks once; a [`Prober`] looks again and again and counts, as the kubelet does. What they say is what the
//! kubelet says, so that it can stand behind `Readiness probe failed: `.
//!
//! *Guarantees.* A check ends within the probe's `timeoutSeconds`, and reads a bounded answer. What it started is gone when it ends
//! or is dropped. *Assumes* that the target's address is local. *Not done*: HTTP proxies; verification of certificates, which
//! the kubelet does not do either.

mod dial;
mod exec;
pub(crate) mod grpc;
pub(crate) mod http;
mod prober;
mod tls;

use std::{fmt, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::Probe, apimachinery::pkg::util::intstr::IntOrString};

use crate::marks::Mark;

pub use self::{
    exec::{Exit, run},
    http::get,
    prober::{Kind, Outcome, Prober},
};

/// As kubelets of the release that we speak for call themselves.
const USER_AGENT: &str = "kube-probe/1.35";

/// How much of an answer, or of a command's output, is read. The kubelet's own number.
const ANSWER: usize = 10 << 10;

/// The container that is looked at. It may be shared by its probes and hooks.
#[derive(Clone)]
pub struct Target {
    /// The pod's address.
    pub ip: IpAddr,
    /// The container's ports that have names.
    pub ports: Vec<(String, u16)>,
    /// The container's whole environment, in which commands run.
    pub env: Vec<(String, String)>,
    /// The container's working directory.
    pub dir: PathBuf,
    /// What all processes of the container carry.
    pub mark: Mark,
}

/// Without the environment, which may hold secrets.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("ip", &self.ip).field("ports", &self.ports).finish_non_exhaustive()
    }
}

impl Target {
    /// The number of a port that is given by name or by number.
    fn port(&self, port: &IntOrString) -> Result<u16, Fault> {
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
        let unknown = || Fault::Errored(format!("couldn't find port {shown} in the container"));
        number.filter(|number| *number > 0).ok_or_else(unknown)
    }
}

/// Why a check did not succeed. Its text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The container is not well.
    #[error("{0}")]
    Failed(String),
    /// There was no check, such as for a port that the container does not have. That says nothing about the container.
    #[error("{0}")]
    Errored(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Looks once. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    tls: Arc<tls::Unverified>,
}

impl Checker {
    /// Whether the probe succeeds now; if not, why.
    pub async fn check(&self, probe: &Probe, target: &Target) -> Result<(), Fault> {
        let limit = seconds(probe.timeout_seconds, 1);
        if let Some(exec) = &probe.exec {
            exec::check(exec.command.as_deref().unwrap_or_default(), target, limit).await
        } else if let Some(action) = &probe.http_get {
            http::check(action, target, &self.tls, limit).await
        } else if let Some(action) = &probe.tcp_socket {
            let (host, port) = (host(action.host.as_deref(), target), target.port(&action.port)?);
            Ok(dial::tcp(&host, port, limit).await.map(drop)?)
        } else if let Some(action) = &probe.grpc {
            let port = target.port(&IntOrString::Int(action.port))?;
            Ok(grpc::check(target.ip, port, action.service.as_deref().unwrap_or_default(), limit).await?)
        } else {
            Err(Fault::Errored("missing probe handler: give one of exec, httpGet, tcpSocket and grpc".to_owned()))
        }
    }
}

/// What an action names, or the pod.
fn host(named: Option<&str>, target: &Target) -> String {
    named.filter(|host| !host.is_empty()).map_or_else(|| target.ip.to_string(), str::to_owned)
}

/// A number of seconds of a probe. Those that make no sense never pass the API server.
fn seconds(given: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(given.and_then(|given| u64::try_from(given).ok()).filter(|given| *given > 0).unwrap_or(default))
}

#[cfg(test)]
mod tests;
