//! What all pods of a node are told about it.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Variables of the node's own environment that its workloads have too. Everything else stays here: it may be a secret.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "LANGUAGE", "TZ"];

/// A node, as its pods see it.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Its own address, which is `status.hostIP` of its pods.
    pub address: IpAddr,
    /// Where pods reach the API server.
    pub api_server: SocketAddr,
    /// What pods can have; the limits of those that set none.
    pub allocatable: BTreeMap<String, Quantity>,
    /// The directories of persistent volume claims. Nodes of one cluster may share it, so that a pod finds its data on any.
    pub claims: PathBuf,
    /// What is there before anything that a pod asks for: see [`inherited`].
    pub environment: BTreeMap<String, String>,
}

/// What workloads have of this process's environment: where programs are, and how people write and count time.
pub fn inherited() -> BTreeMap<String, String> {
    let wanted = |name: &str| INHERITED.contains(&name) || name.starts_with("LC_");
    let utf8 = std::env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    utf8.filter(|(name, _)| wanted(name)).collect()
}
