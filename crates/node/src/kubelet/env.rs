//! How a container is started: its program, arguments, variables and working directory.
//!
//! A container has no file system of its own here. It has a *root*, a directory where its volumes are at their mount paths,
//! and sees the node's files where the root has none, as it would see an image's. `KUBEWAKE_ROOT` names the root. A
//! pod cannot set it: a manifest that gives it an empty value works here and on any cluster with arguments such as
//! `--config=$(KUBEWAKE_ROOT)/etc/app/config.yaml`.
//!
//! *Guarantees.* Variables are the kubelet's: what `env` says, over `envFrom`, over Services, with `$(NAME)` expanded. Of the node's own
//! environment a container has only [what everybody may know](super::facts::inherited). Values appear in no error and no `Debug`.

mod command;
mod services;
mod values;
mod variables;

use std::{collections::BTreeMap, fmt, net::IpAddr, path::PathBuf, sync::Arc};

use k8s_openapi::api::core::v1::{Container, Pod, Service};
use kube::ResourceExt;

use super::{
    facts::NodeFacts,
    sources::{Kind, Ref, Sources},
    volumes::{MountError, Volumes},
};
use crate::{error::Error, images::Program};

pub use self::variables::{TooLong, Variables};

/// The variable that names a container's root.
pub const ROOT: &str = "KUBEWAKE_ROOT";
/// The longest name that a machine has.
const HOST_NAME: usize = 63;

/// What a container is started from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// One of its containers.
    pub container: &'a Container,
    /// What the container's image stands for.
    pub program: &'a Program,
    /// The node that it runs on.
    pub node: &'a NodeFacts,
    /// The pod's address.
    pub pod_ip: IpAddr,
    /// The pod's volumes, which are prepared.
    pub volumes: &'a Volumes,
    /// All Services of the pod's namespace.
    pub services: &'a [Arc<Service>],
    /// Where ConfigMaps and Secrets are read.
    pub sources: &'a Sources,
}

/// A process to start. `Debug` shows no arguments and no values, which may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// An absolute path, or a name to look up in `PATH`.
    pub program: PathBuf,
    /// The program as the pod writes it, for messages: what is found or expanded is the node's to know.
    pub written: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// All of its variables.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub dir: PathBuf,
    /// The container's root.
    pub root: PathBuf,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("program", &self.program).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Why a container cannot be started yet: `CreateContainerConfigError` with this text, until it can.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ConfigError {
    #[error("{} {:?} not found", .0.kind.name().to_lowercase(), .0.key.name)]
    Missing(Ref),
    #[error("couldn't find key {key} in {} {}", .of.kind.name(), .of.key)]
    MissingKey { of: Ref, key: String },
    #[error("key {key} in {} {} cannot be the value of a variable, as it is no text; mount it as a file", .of.kind.name(), .of.key)]
    NotText { of: Ref, key: String },
    #[error("variable {name:?}: {why}")]
    Variable { name: String, why: String },
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Api(Error),
}

impl ConfigError {
    /// The object whose change may help.
    pub fn needs(&self) -> Option<&Ref> {
        match self {
            Self::Missing(of) | Self::MissingKey { of, .. } | Self::NotText { of, .. } => Some(of),
            Self::Variable { .. } | Self::TooLong(_) | Self::Mount(_) | Self::Api(_) => None,
        }
    }
}

/// Makes the container's root, and says how to start it. Each start begins with a new root.
///
/// # Errors
/// If something that the container refers to is not there, or cannot be what it is to be.
pub async fn resolve(inputs: &Inputs<'_>) -> Result<Launch, ConfigError> {
    let Inputs { pod, container, node, volumes, .. } = *inputs;
    let root = volumes.root(&container.name);
    let mut variables = Variables::default();
    // Before all others, which may refer to it.
    variables.set(ROOT, root.to_string_lossy())?;
    services::add(pod, node, inputs.services, &mut variables)?;
    values::add(inputs, &mut variables).await?;
    volumes.mount(container, &mut variables).await?;
    let dir = command::directory(container, &root);
    let written = container.command.iter().flatten().next().map_or_else(|| inputs.program.path.clone(), PathBuf::from);
    let (program, args) = command::line(container, inputs.program, &mut variables, &root, &dir)?;
    tokio::fs::create_dir_all(&dir).await.map_err(|source| MountError::io("make the directory", &dir, source))?;
    let mut env = beneath(inputs);
    env.extend(variables.iter().map(|(name, value)| (name.clone(), value.clone())));
    values::check(&env)?;
    Ok(Launch { program, written, args, env: env.into_iter().collect(), dir, root })
}

/// What is there before the pod says anything. It is not expanded in arguments: that is the kubelet's rule for what an image brings.
fn beneath(inputs: &Inputs<'_>) -> BTreeMap<String, String> {
    let Inputs { pod, container, node, volumes, .. } = *inputs;
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let named = pod.spec.as_ref().and_then(|spec| spec.hostname.clone()).filter(|name| !name.is_empty());
    let host_name = named.unwrap_or_else(|| pod.name_any()).chars().take(HOST_NAME).collect();
    let own = [
        ("HOSTNAME".to_owned(), host_name),
        // Without credentials of its own a container must not find those of the person who runs the cluster.
        ("KUBECONFIG".to_owned(), volumes.kubeconfig(&container.name).map_or_else(|| "/dev/null".to_owned(), path)),
        ("TMPDIR".to_owned(), path(volumes.root(&container.name).join("tmp"))),
    ];
    node.environment.clone().into_iter().chain(own).collect()
}

impl From<Error> for ConfigError {
    fn from(error: Error) -> Self {
        Self::Api(error)
    }
}

/// A ConfigMap or Secret of the pod's own namespace.
fn refer(pod: &Pod, kind: Kind, name: &str) -> Ref {
    Ref::new(kind, pod.metadata.namespace.as_deref().unwrap_or_default(), name)
}

#[cfg(test)]
mod tests;
