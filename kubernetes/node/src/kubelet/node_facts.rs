//! The facts about a node that its pods can see.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::volumes::relative_to_root;

/// Variables that containers inherit from the node's environment. All others may be secrets.
const INHERITED_VARIABLES: [&str; 5] = ["PATH", "HOME", "LANG", "LANGUAGE", "TZ"];

/// The directories that each node has for itself, relative to the root: all nodes are on one machine, and each
/// has its own container logs and its own state of the agents that read them.
const NODE_DIRECTORIES: [&str; 2] = ["var/log", "var/lib"];

/// A node, as its pods see it.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    pub name: String,
    /// The node's own address, the `status.hostIP` of its pods.
    pub address: IpAddr,
    /// The address at which pods reach the API server.
    pub api_server: SocketAddr,
    /// The resources for pods; they are the limits of containers without any.
    pub allocatable: BTreeMap<String, Quantity>,
    /// The directories of persistent volume claims. Nodes of one cluster may share it, so that a pod finds its
    /// data on every node.
    pub claims: PathBuf,
    /// The root of the files that the node has like a machine of its own: see [`NodeFacts::host_path`].
    pub host: PathBuf,
    /// The initial environment of containers: see [`inherited_environment`].
    pub environment: BTreeMap<String, String>,
}

impl NodeFacts {
    /// Where a path of the node is, and whether it belongs to this node alone. All other paths are the machine's.
    pub fn host_path(&self, path: &Path) -> (PathBuf, bool) {
        let inside = relative_to_root(path);
        let is_own = NODE_DIRECTORIES.iter().any(|dir| inside.starts_with(dir));
        if is_own { (self.host.join(inside), true) } else { (path.to_owned(), false) }
    }
}

/// The part of this process's environment that containers inherit: program paths and locale.
pub fn inherited_environment() -> BTreeMap<String, String> {
    let wanted = |name: &str| INHERITED_VARIABLES.contains(&name) || name.starts_with("LC_");
    let utf8 = std::env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    utf8.filter(|(name, _)| wanted(name)).collect()
}
