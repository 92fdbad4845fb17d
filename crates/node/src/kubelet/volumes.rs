//! The volumes of a pod, and the roots of its containers where they are mounted.
//!
//! ```text
//!   <pod>/volumes/<volume>/            what is written here, and emptyDirs
//!   <pod>/containers/<name>/root/      where each mount path is a link to its volume
//!   <pod>/containers/<name>/kubeconfig
//! ```
//!
//! *Guarantees.* Volumes of ConfigMaps, Secrets, tokens and the downward API are written as the kubelet does: readers see the
//! old files or the new ones, never half of either, and the new ones within a second of a change for as long as these
//! [`Volumes`] live. Tokens are renewed at four fifths of their life. What is mounted with a `subPath` is a copy of the moment at which its container
//! started. A volume whose ConfigMap is deleted keeps its files.
//!
//! *Not done*, as all processes are one user's on one machine: read-only mounts, `fsGroup`, limits of sizes (they are
//! [watched](Volumes::exceeded) instead), and memory as a medium.

mod account;
mod atomic;
pub mod claims;
mod directories;
mod mounts;
mod payload;
mod prepared;
mod upkeep;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::{sync::oneshot, task::JoinHandle};

use self::{
    account::Account,
    directories::Limit,
    mounts::{Job, Mount, Place},
    payload::Surroundings,
    prepared::Prepared,
    upkeep::{Upkeep, Written},
};
use super::{
    env::{TooLong, Variables},
    facts::NodeFacts,
    sources::{Ref, Sources},
    tokens::Tokens,
};
use crate::error::Error;

/// How long an API server may keep a volume from being closed.
const CLOSING: Duration = Duration::from_secs(5);

/// Why a volume is not there yet. The text is that of the kubelet's `FailedMount` events.
#[derive(Debug, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume {volume:?} : {cause}")]
pub struct VolumeError {
    /// Which volume.
    pub volume: String,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{} {:?} not found", .0.kind.name().to_lowercase(), .0.key.name)]
    Missing(Ref),
    #[error("{0}")]
    Waits(String, Ref),
    #[error("failed to fetch token: {1}")]
    Token(Ref, Error),
    #[error("{0}")]
    Refused(String),
    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{0}")]
    Api(#[from] Error),
}

impl VolumeError {
    /// The object whose change may help.
    pub fn needs(&self) -> Option<&Ref> {
        match &self.cause {
            Cause::Missing(of) | Cause::Waits(_, of) | Cause::Token(of, _) => Some(of),
            Cause::Refused(_) | Cause::Io { .. } | Cause::Api(_) => None,
        }
    }

    /// Whether the object that it shows is not there.
    fn is_missing(&self) -> bool {
        matches!(self.cause, Cause::Missing(_))
    }
}

/// Why a container does not get its root.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum MountError {
    #[error("volumeMount {path:?}: {why}")]
    Mount { path: String, why: String },
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl MountError {
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}

/// Whose volumes, and where.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The pod's own directory. Whoever made it removes it when the volumes are dropped.
    pub dir: &'a Path,
    /// The pod's node.
    pub node: &'a Arc<NodeFacts>,
    /// Where ConfigMaps and Secrets are read.
    pub sources: &'a Arc<Sources>,
}

/// The volumes of one pod, which are kept up to date until this is dropped.
#[derive(Debug)]
pub struct Volumes {
    dir: PathBuf,
    account: Account,
    places: BTreeMap<String, Place>,
    limits: Vec<Limit>,
    /// Links within directories of the host, which must not stay there.
    outside: Mutex<BTreeSet<PathBuf>>,
    /// It ends when the first of the two is dropped.
    upkeep: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Volumes {
    /// Makes the volumes of a pod. What is there from an earlier run stays or is brought up to date.
    ///
    /// # Errors
    /// With the first volume that cannot be made. It may be there later: try again when what it needs has changed.
    pub async fn prepare(request: Request<'_>) -> Result<Self, VolumeError> {
        let dir = &directories::private(request.dir).map_err(|cause| cause.of("root"))?;
        let Request { pod, node, sources, .. } = request;
        let request = Request { dir, ..request };
        // Before anything is read, so that no change is missed.
        let changes = sources.changes();
        let account = Account::of(&request);
        let given = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let prepared = try_join_all(given.map(|volume| Prepared::new(volume, &request))).await?;
        let (mut written, mut places, mut limits) = (Vec::<Written>::new(), BTreeMap::new(), Vec::new());
        for Prepared { name, place, recipe, limit } in prepared {
            written.extend(recipe.map(|recipe| Written::new(&name, place.path(), recipe)));
            limits.extend(limit);
            places.insert(name, place);
        }
        let surroundings = Surroundings { node: Arc::clone(node), sources: Arc::clone(sources) };
        let tokens = Tokens::new(sources.client().clone(), pod);
        for volume in &written {
            directories::make(volume.dir()).map_err(|cause| cause.of(volume.name()))?;
        }
        let mut upkeep = Upkeep::new(pod, surroundings, written, tokens);
        upkeep.write().await?;
        let (end, ended) = oneshot::channel();
        let upkeep = tokio::spawn(upkeep.run(changes, ended));
        Ok(Self {
            dir: dir.clone(),
            account,
            places,
            limits,
            outside: Mutex::default(),
            upkeep: Mutex::new(Some((end, upkeep))),
        })
    }

    /// The root of a container, whether it has been made or not.
    pub fn root(&self, container: &str) -> PathBuf {
        self.container(container).join("root")
    }

    /// A file by which programs find the API server, if the container has been mounted and has a token.
    pub fn kubeconfig(&self, container: &str) -> Option<PathBuf> {
        Some(self.container(container).join("kubeconfig")).filter(|path| path.exists())
    }

    fn container(&self, name: &str) -> PathBuf {
        self.dir.join("containers").join(name)
    }

    /// Makes the root of a container anew, with its volumes at their paths. What was written to an earlier root is gone.
    ///
    /// # Errors
    /// If mounts get into each other's way, or a path cannot be made.
    pub async fn mount(&self, container: &Container, variables: &mut Variables) -> Result<(), MountError> {
        let mut mounts = Vec::new();
        for mount in container.volume_mounts.iter().flatten() {
            let refuse = |why: &str| MountError::Mount { path: mount.mount_path.clone(), why: why.to_owned() };
            let place = self.places.get(&mount.name).ok_or_else(|| refuse("there is no volume of this name"))?;
            let sub_path = match &mount.sub_path_expr {
                Some(expression) if !expression.is_empty() => Some(variables.expand(expression)?),
                _ => mount.sub_path.clone(),
            };
            mounts.push(Mount::new(&mount.mount_path, place, sub_path.as_deref())?);
        }
        let message = container.termination_message_path.as_deref().map(|path| within(Path::new(path)));
        let dir = self.container(&container.name);
        let (account, mut job) = (self.account.clone(), Job { dir, pod: self.dir.clone(), mounts, message });
        let made = tokio::task::spawn_blocking(move || {
            let made = job.run()?;
            account.write_kubeconfig(&job.dir).map(|()| made)
        });
        let made = made.await.map_err(|error| MountError::io("make", &self.dir, io::Error::other(error)))??;
        self.outside.lock().unwrap_or_else(PoisonError::into_inner).extend(made);
        Ok(())
    }

    /// Ends the upkeep and waits until it has: nothing is written after this, so that the pod's directory can be removed.
    pub async fn close(&self) {
        let upkeep = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((end, mut upkeep)) = upkeep else { return };
        drop(end);
        if tokio::time::timeout(CLOSING, &mut upkeep).await.is_err() {
            upkeep.abort();
        }
    }

    /// Whether there is a limit to what one of them may hold.
    pub fn is_limited(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Why the pod must be evicted, if one of its emptyDirs holds more than it may. It looks at every file.
    pub fn exceeded(&self) -> Option<String> {
        self.limits.iter().find_map(Limit::exceeded)
    }
}

impl Drop for Volumes {
    fn drop(&mut self) {
        for link in self.outside.get_mut().unwrap_or_else(PoisonError::into_inner).iter() {
            if link.is_symlink() {
                // It may be gone already.
                let _ = std::fs::remove_file(link);
            }
        }
    }
}

impl Cause {
    fn of(self, volume: &str) -> VolumeError {
        VolumeError { volume: volume.to_owned(), cause: self }
    }

    fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}

/// A path of a container as one relative to its root, which it never leaves.
pub(super) fn within(path: &Path) -> PathBuf {
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
