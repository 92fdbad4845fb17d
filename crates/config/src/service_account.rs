//! The credentials of a pod, for components that read the Kubernetes API.

use std::path::{Path, PathBuf};

/// The directory with the credentials of a pod's ServiceAccount: `token`, `ca.crt` and `namespace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountFiles {
    directory: PathBuf,
}

impl ServiceAccountFiles {
    /// Where a kubelet mounts them.
    const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

    /// The files under the path that `locate` returns for their usual one.
    pub fn located_by(locate: impl FnOnce(&Path) -> PathBuf) -> Self {
        Self { directory: locate(Path::new(Self::MOUNT_PATH)) }
    }

    pub fn token(&self) -> PathBuf {
        self.directory.join("token")
    }

    pub fn certificate_authority(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    pub fn namespace(&self) -> PathBuf {
        self.directory.join("namespace")
    }
}

impl Default for ServiceAccountFiles {
    fn default() -> Self {
        Self::located_by(Path::to_owned)
    }
}
