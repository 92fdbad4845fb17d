//! The process of a container: its program, arguments, variables and working directory.
//!
//! A container has no file system of its own here. It has a *root*, a directory with its volumes at their mount
//! paths, and sees the node's files where the root has none, as a container sees the files of its image.
//! `KUBEWAKE_ROOT` is the path of the root. A pod cannot set this variable: a manifest that sets it to an empty
//! value works here and on any other cluster, with arguments such as
//! `--config=$(KUBEWAKE_ROOT)/etc/app/config.yaml`.
//!
//! *Guaranteed*: variables are resolved as by the kubelet: `env` overrides `envFrom`, which overrides Services,
//! and `$(NAME)` is expanded. Of the node's own environment a container gets only the [inherited
//! variables](super::node_facts::inherited_environment). Values appear in no error and in no `Debug` output.

mod command;
mod declared_variables;
mod service_variables;
mod variables;

use std::{collections::BTreeMap, fmt, net::IpAddr, path::PathBuf, sync::Arc};

use k8s_openapi::api::core::v1::{Container, Pod, Service};
use kube::ResourceExt;

use super::{
    node_facts::NodeFacts,
    sources::{SourceKind, SourceReader, SourceRef},
    volumes::{MountError, PodVolumes},
};
use crate::{error::ClusterError, images::ImageEntrypoint};

pub use self::variables::{EnvVariables, TooLong};

/// The variable with the path of a container's root.
pub const ROOT_VARIABLE: &str = "KUBEWAKE_ROOT";
/// The longest host name on Linux.
const MAX_HOST_NAME_BYTES: usize = 63;

/// The inputs for the process of a container.
#[derive(Clone, Copy, Debug)]
pub struct ContainerInputs<'a> {
    pub pod: &'a Pod,
    pub container: &'a Container,
    /// The entry point of the container's image.
    pub program: &'a ImageEntrypoint,
    /// The node of the pod.
    pub node: &'a NodeFacts,
    pub pod_ip: IpAddr,
    /// The prepared volumes of the pod.
    pub volumes: &'a PodVolumes,
    /// All Services in the pod's namespace.
    pub services: &'a [Arc<Service>],
    /// The reader for ConfigMaps and Secrets.
    pub sources: &'a SourceReader,
}

/// A process to start. `Debug` omits arguments and values, which may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// An absolute path, or a name to look up in `PATH`.
    pub program: PathBuf,
    /// The program as the pod names it, for messages.
    pub displayed_program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub dir: PathBuf,
    pub root: PathBuf,
}

impl fmt::Debug for ProcessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("program", &self.program).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// The reason why a container cannot be started yet: the message of `CreateContainerConfigError`.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{} {:?} not found", .0.kind.kind_name().to_lowercase(), .0.key.name)]
    Missing(SourceRef),
    #[error("couldn't find key {key} in {} {}", .of.kind.kind_name(), .of.key)]
    MissingKey { of: SourceRef, key: String },
    #[error("key {key} in {} {} cannot be the value of an environment variable because it is not UTF-8 text; mount it as a file", .of.kind.kind_name(), .of.key)]
    NotText { of: SourceRef, key: String },
    #[error("variable {name:?}: {why}")]
    Variable { name: String, why: String },
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Api(ClusterError),
}

impl ConfigError {
    /// The object whose change may resolve the error.
    pub fn missing_source(&self) -> Option<&SourceRef> {
        match self {
            Self::Missing(of) | Self::MissingKey { of, .. } | Self::NotText { of, .. } => Some(of),
            Self::Variable { .. } | Self::TooLong(_) | Self::Mount(_) | Self::Api(_) => None,
        }
    }
}

/// Creates the container's root and returns the process to start. Each start gets a new root.
///
/// # Errors
/// If a referenced object does not exist, or a value is not valid for its use.
pub async fn resolve_process_spec(inputs: &ContainerInputs<'_>) -> Result<ProcessSpec, ConfigError> {
    let ContainerInputs { pod, container, node, volumes, .. } = *inputs;
    let root = volumes.root(&container.name);
    let mut variables = EnvVariables::default();
    // The first variable, since all others may reference it.
    variables.set(ROOT_VARIABLE, root.to_string_lossy())?;
    service_variables::add_service_variables(pod, node, inputs.services, &mut variables)?;
    declared_variables::add_declared_variables(inputs, &mut variables).await?;
    volumes.mount_root(container, &mut variables).await?;
    let dir = command::working_directory(container, &root);
    let written = container.command.iter().flatten().next().map_or_else(|| inputs.program.path.clone(), PathBuf::from);
    let (program, args) = command::command_line(container, inputs.program, &mut variables, &root, &dir)?;
    tokio::fs::create_dir_all(&dir).await.map_err(|source| MountError::io("create directory", &dir, source))?;
    let mut env = base_variables(inputs);
    env.extend(variables.iter().map(|(name, value)| (name.clone(), value.clone())));
    declared_variables::check_variables(&env)?;
    Ok(ProcessSpec { program, displayed_program: written, args, env: env.into_iter().collect(), dir, root })
}

/// The variables before those of the pod. They are not expanded in arguments: the kubelet's rule for variables
/// of an image.
fn base_variables(inputs: &ContainerInputs<'_>) -> BTreeMap<String, String> {
    let ContainerInputs { pod, container, node, volumes, .. } = *inputs;
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let named = pod.spec.as_ref().and_then(|spec| spec.hostname.clone()).filter(|name| !name.is_empty());
    let host_name = named.unwrap_or_else(|| pod.name_any()).chars().take(MAX_HOST_NAME_BYTES).collect();
    let own = [
        ("HOSTNAME".to_owned(), host_name),
        // Without a token of its own, a container must not find the credentials of the user who runs the
        // cluster.
        ("KUBECONFIG".to_owned(), volumes.kubeconfig(&container.name).map_or_else(|| "/dev/null".to_owned(), path)),
        ("TMPDIR".to_owned(), path(volumes.root(&container.name).join("tmp"))),
    ];
    node.environment.clone().into_iter().chain(own).collect()
}

impl From<ClusterError> for ConfigError {
    fn from(error: ClusterError) -> Self {
        Self::Api(error)
    }
}

/// A reference to a ConfigMap or Secret in the pod's namespace.
fn source_ref(pod: &Pod, kind: SourceKind, name: &str) -> SourceRef {
    SourceRef::new(kind, pod.metadata.namespace.as_deref().unwrap_or_default(), name)
}

#[cfg(test)]
mod tests;
