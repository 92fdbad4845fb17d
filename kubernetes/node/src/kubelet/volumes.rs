//! The volumes of a pod, and the roots of its containers in which they are mounted.
//!
//! ```text
//!   <pod>/volumes/<volume>/            written volumes, and emptyDirs
//!   <pod>/containers/<name>/root/      each mount path is a link to its volume
//!   <pod>/containers/<name>/kubeconfig
//! ```
//!
//! *Guaranteed*: volumes of ConfigMaps, Secrets, tokens and the downward API are written as by the kubelet:
//! readers see the old files or the new ones, never a mixture, and the new ones within a second of a change for
//! as long as the [`PodVolumes`] live. Tokens are renewed at four fifths of their lifetime. A mount with a
//! `subPath` is a copy from the start of its container. A volume whose ConfigMap is deleted keeps its files.
//!
//! *Not done*, as all processes belong to one user on one machine: read-only mounts (a mount is a link), `fsGroup`,
//! memory as a medium, and enforced size limits (they are [checked](PodVolumes::exceeded_size_limit) instead).

mod atomic_writer;
pub mod claims;
mod container_root;
mod directories;
mod kubeconfig;
mod prepared_volume;
mod projection;
mod volume_updater;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewake_runtime::lock::Mutex;
use tokio::{sync::oneshot, task::JoinHandle};

use self::{
    container_root::{MountPoint, RootBuilder, VolumeLocation},
    directories::SizeLimit,
    kubeconfig::KubeconfigTemplate,
    prepared_volume::PreparedVolume,
    projection::ProjectionContext,
    volume_updater::{VolumeUpdater, WrittenVolume},
};
use super::{
    env::{EnvVariables, TooLong},
    node_facts::NodeFacts,
    sources::{SourceReader, SourceRef},
    tokens::TokenManager,
};
use crate::error::ClusterError;

/// The longest wait for the API server when volumes are closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a volume is not ready. The message is that of the kubelet's `FailedMount` events.
#[derive(Debug, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume {volume:?} : {cause}")]
pub struct VolumeError {
    pub volume: String,
    cause: VolumeErrorCause,
}

#[derive(Debug, thiserror::Error)]
enum VolumeErrorCause {
    #[error("{} {:?} not found", .0.kind.kind_name().to_lowercase(), .0.key.name)]
    Missing(SourceRef),
    #[error("{0}")]
    Waits(String, SourceRef),
    #[error("failed to fetch token: {1}")]
    Token(SourceRef, ClusterError),
    #[error("{0}")]
    Refused(String),
    #[error("failed to {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{0}")]
    Api(#[from] ClusterError),
}

impl VolumeError {
    /// The object whose change may resolve the error.
    pub fn missing_source(&self) -> Option<&SourceRef> {
        match &self.cause {
            VolumeErrorCause::Missing(of) | VolumeErrorCause::Waits(_, of) | VolumeErrorCause::Token(of, _) => Some(of),
            VolumeErrorCause::Refused(_) | VolumeErrorCause::Io { .. } | VolumeErrorCause::Api(_) => None,
        }
    }

    /// Whether the referenced object does not exist.
    fn is_missing(&self) -> bool {
        matches!(self.cause, VolumeErrorCause::Missing(_))
    }
}

/// The reason why a container's root cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    #[error("volumeMount {path:?}: {why}")]
    Mount { path: String, why: String },
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("failed to {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl MountError {
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct VolumeRequest<'a> {
    pub pod: &'a Pod,
    /// The directory of the pod. Its creator removes it after the volumes are dropped.
    pub dir: &'a Path,
    pub node: &'a Arc<NodeFacts>,
    /// The reader for ConfigMaps and Secrets.
    pub sources: &'a Arc<SourceReader>,
}

/// The volumes of one pod, which are updated until this is dropped.
#[derive(Debug)]
pub struct PodVolumes {
    dir: PathBuf,
    account: KubeconfigTemplate,
    locations: BTreeMap<String, VolumeLocation>,
    limits: Vec<SizeLimit>,
    /// Links within directories of the host, which have to be removed.
    host_links: Mutex<BTreeSet<PathBuf>>,
    /// The update task; it ends when the sender is dropped.
    upkeep: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl PodVolumes {
    /// Prepares the volumes of a pod. Existing directories are kept and updated.
    ///
    /// # Errors
    /// The error of the first volume that fails. Retry after a change of the object that it needs.
    pub async fn prepare(request: VolumeRequest<'_>) -> Result<Self, VolumeError> {
        let dir = &directories::make_private_dir(request.dir).map_err(|cause| cause.for_volume("root"))?;
        let VolumeRequest { pod, node, sources, .. } = request;
        let request = VolumeRequest { dir, ..request };
        // Before the first read, so that no change is missed.
        let changes = sources.subscribe();
        let account = KubeconfigTemplate::for_pod(&request);
        let given = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let prepared = try_join_all(given.map(|volume| PreparedVolume::new(volume, &request))).await?;
        let mut written = Vec::<WrittenVolume>::new();
        let mut places = BTreeMap::new();
        let mut limits = Vec::new();
        for PreparedVolume { name, location: place, projected_files: recipe, size_limit: limit } in prepared {
            written.extend(recipe.map(|recipe| WrittenVolume::new(&name, place.path(), recipe)));
            limits.extend(limit);
            places.insert(name, place);
        }
        let surroundings = ProjectionContext { node: Arc::clone(node), sources: Arc::clone(sources) };
        let tokens = TokenManager::new(sources.client().clone(), pod);
        for volume in &written {
            directories::make_dir(volume.dir()).map_err(|cause| cause.for_volume(volume.name()))?;
        }
        let mut upkeep = VolumeUpdater::new(pod, surroundings, written, tokens);
        upkeep.write_all().await?;
        let (end, ended) = oneshot::channel();
        let upkeep = tokio::spawn(upkeep.run(changes, ended));
        Ok(Self {
            dir: dir.clone(),
            account,
            locations: places,
            limits,
            host_links: Mutex::default(),
            upkeep: Mutex::new(Some((end, upkeep))),
        })
    }

    /// The path of a container's root, whether it exists or not.
    pub fn root(&self, container: &str) -> PathBuf {
        self.container(container).join("root")
    }

    /// The kubeconfig of a container, if its root exists and it has a token.
    pub fn kubeconfig(&self, container: &str) -> Option<PathBuf> {
        Some(self.container(container).join("kubeconfig")).filter(|path| path.exists())
    }

    fn container(&self, name: &str) -> PathBuf {
        self.dir.join("containers").join(name)
    }

    /// Creates the root of a container anew, with its volumes at their mount paths. The content of an earlier
    /// root is removed.
    ///
    /// # Errors
    /// If mounts conflict, or a path cannot be created.
    pub async fn mount_root(&self, container: &Container, variables: &mut EnvVariables) -> Result<(), MountError> {
        let mut mounts = Vec::new();
        for mount in container.volume_mounts.iter().flatten() {
            let refuse = |why: &str| MountError::Mount { path: mount.mount_path.clone(), why: why.to_owned() };
            let place = self.locations.get(&mount.name).ok_or_else(|| refuse("the pod has no volume of this name"))?;
            let sub_path = match &mount.sub_path_expr {
                Some(expression) if !expression.is_empty() => Some(variables.expand(expression)?),
                _ => mount.sub_path.clone(),
            };
            mounts.push(MountPoint::new(&mount.mount_path, place, sub_path.as_deref())?);
        }
        let message = container.termination_message_path.as_deref().map(|path| relative_to_root(Path::new(path)));
        let dir = self.container(&container.name);
        let (account, mut job) =
            (self.account.clone(), RootBuilder { dir, pod: self.dir.clone(), mounts, termination_message: message });
        let made = tokio::task::spawn_blocking(move || {
            let made = job.build()?;
            account.write_kubeconfig(&job.dir).map(|()| made)
        });
        let made =
            made.await.map_err(|error| MountError::io("create directory", &self.dir, io::Error::other(error)))??;
        self.host_links.lock().extend(made);
        Ok(())
    }

    /// Stops the updates and waits for the end: nothing is written after this, so that the pod's directory can
    /// be removed.
    pub async fn close(&self) {
        let upkeep = self.upkeep.lock().take();
        let Some((end, mut upkeep)) = upkeep else { return };
        drop(end);
        if tokio::time::timeout(CLOSE_TIMEOUT, &mut upkeep).await.is_err() {
            upkeep.abort();
        }
    }

    /// Whether a volume has a size limit.
    pub fn is_limited(&self) -> bool {
        !self.limits.is_empty()
    }

    /// The reason for an eviction, if an emptyDir exceeds its size limit. Reads all its files.
    pub fn exceeded_size_limit(&self) -> Option<String> {
        self.limits.iter().find_map(SizeLimit::exceeded_message)
    }
}

impl Drop for PodVolumes {
    fn drop(&mut self) {
        for link in self.host_links.get_mut().iter() {
            if link.is_symlink() {
                // It may have been removed already.
                let _ = std::fs::remove_file(link);
            }
        }
    }
}

impl VolumeErrorCause {
    fn for_volume(self, volume: &str) -> VolumeError {
        VolumeError { volume: volume.to_owned(), cause: self }
    }

    fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}

/// Converts a path of a container to one relative to its root, which it cannot leave.
pub(super) fn relative_to_root(path: &Path) -> PathBuf {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::ParentDir => drop(inside.pop()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    inside
}

#[cfg(test)]
mod tests;
