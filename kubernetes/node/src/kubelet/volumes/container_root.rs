//! The root of a container: a directory in which each mount path is a link to its volume.
//!
//! A mount path below another one is a link within that volume; the kubelet creates a mount point there, too.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

use super::{MountError, relative_to_root};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VolumeLocation {
    /// The node writes the files.
    Written(PathBuf),
    /// The pods write the files.
    Directory(PathBuf),
    /// The host owns the files.
    Host(PathBuf),
}

impl VolumeLocation {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Written(path) | Self::Directory(path) | Self::Host(path) => path,
        }
    }
}

/// A volume, or a part of it, at a mount path.
#[derive(Clone, Debug)]
pub(super) struct MountPoint {
    pub(super) relative_path: PathBuf,
    given: String,
    location: VolumeLocation,
    sub_path: Option<PathBuf>,
}

impl MountPoint {
    pub(super) fn new(path: &str, place: &VolumeLocation, sub_path: Option<&str>) -> Result<Self, MountError> {
        let refuse = |why: &str| Err(MountError::Mount { path: path.to_owned(), why: why.to_owned() });
        let at = relative_to_root(Path::new(path));
        if at.as_os_str().is_empty() {
            return refuse("a volume cannot be mounted at \"/\"");
        }
        let part = sub_path.filter(|part| !part.is_empty()).map(PathBuf::from);
        let leaves =
            |part: &PathBuf| !part.components().all(|one| matches!(one, Component::Normal(_) | Component::CurDir));
        if part.as_ref().is_some_and(leaves) {
            return refuse("the subPath must be a relative path without \"..\"");
        }
        Ok(Self { relative_path: at, given: path.to_owned(), location: place.clone(), sub_path: part })
    }

    fn mount_failure(&self, why: impl Into<String>) -> MountError {
        MountError::Mount { path: self.given.clone(), why: why.into() }
    }

    fn io_failure(&self, error: &io::Error) -> MountError {
        self.mount_failure(error.to_string())
    }
}

pub(super) struct RootBuilder {
    pub(super) dir: PathBuf,
    pub(super) pod: PathBuf,
    pub(super) mounts: Vec<MountPoint>,
    /// The termination message path, relative to the root.
    pub(super) termination_message: Option<PathBuf>,
}

impl RootBuilder {
    /// Creates the root anew. Returns the links that are outside of the pod's directory.
    pub(super) fn build(&mut self) -> Result<Vec<PathBuf>, MountError> {
        let root = self.dir.join("root");
        // Removes links, not their targets.
        for old in [&root, &self.copies_dir()] {
            match fs::remove_dir_all(old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(MountError::io("remove", old, error));
                }
                _ => {}
            }
        }
        fs::create_dir_all(&root).map_err(|source| MountError::io("create directory", &root, source))?;
        // Parents come before children.
        self.mounts.sort_by(|one, other| one.relative_path.cmp(&other.relative_path));
        let mut outside = Vec::new();
        for (index, mount) in self.mounts.iter().enumerate() {
            let target = self.link_target(index, mount)?;
            let link = self.link(&root.join(&mount.relative_path), &target, mount)?;
            outside.extend(Some(link).filter(|link| !link.starts_with(&self.pod)));
        }
        self.add_default_paths(&root)?;
        Ok(outside)
    }

    /// The directory of `subPath` copies.
    fn copies_dir(&self) -> PathBuf {
        self.dir.join("copies")
    }

    /// The target of the link at a mount path.
    fn link_target(&self, index: usize, mount: &MountPoint) -> Result<PathBuf, MountError> {
        let Some(part) = &mount.sub_path else { return Ok(mount.location.path().to_owned()) };
        let original = mount.location.path().join(part);
        if let VolumeLocation::Written(_) = mount.location {
            let copy = self.copies_dir().join(index.to_string());
            // Resolve the link, so that all files are of one version even if a new one is written meanwhile.
            let original = original.canonicalize();
            let copied = fs::create_dir_all(self.copies_dir()).and_then(|()| copy_all(&original?, &copy));
            copied
                .map_err(|error| mount.mount_failure(format!("failed to copy subPath {}: {error}", part.display())))?;
            return Ok(copy);
        }
        if !original.exists() {
            fs::create_dir_all(&original).map_err(|error| mount.io_failure(&error))?;
        }
        Ok(original)
    }

    /// Creates the link and returns its real path: below another mount it is in that volume.
    fn link(&self, at: &Path, target: &Path, mount: &MountPoint) -> Result<PathBuf, MountError> {
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
            return Err(mount.mount_failure("the mount path is not a valid path"));
        };
        fs::create_dir_all(parent).map_err(|error| mount.io_failure(&error))?;
        let at = parent.canonicalize().map_err(|error| mount.io_failure(&error))?.join(name);
        if at == target {
            // A volume within another one of the host, at the same place.
            return Ok(at);
        }
        match fs::read_link(&at) {
            Ok(found) if found == target => return Ok(at),
            // The link of another pod that mounts the same volume.
            Ok(found) if self.is_of_another_pod(&found) => {
                fs::remove_file(&at).map_err(|error| mount.io_failure(&error))?;
            }
            // An empty directory is a mount point that another container or cluster created.
            _ => drop(fs::remove_dir(&at)),
        }
        symlink(target, &at).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => mount.mount_failure(
                "the volume that contains the mount path already has a file there, which a link cannot replace",
            ),
            _ => mount.io_failure(&error),
        })?;
        Ok(at)
    }

    fn is_of_another_pod(&self, target: &Path) -> bool {
        let pods = self.pod.parent().unwrap_or(&self.pod);
        target.starts_with(pods) && !target.starts_with(&self.pod)
    }

    /// The default paths of every container: for temporary files, and for the termination message.
    fn add_default_paths(&self, root: &Path) -> Result<(), MountError> {
        let tmp = root.join("tmp");
        fs::create_dir_all(&tmp).map_err(|source| MountError::io("create directory", &tmp, source))?;
        let Some(message) = self.termination_message.as_ref().map(|message| root.join(message)) else { return Ok(()) };
        let make = |message: &Path| {
            let parent = message.parent().unwrap_or(root);
            fs::create_dir_all(parent)?;
            // A file in a host directory would not be removed.
            if parent.canonicalize()?.starts_with(&self.pod) {
                fs::OpenOptions::new().append(true).create(true).open(message)?;
            }
            Ok(())
        };
        make(&message).map_err(|source| MountError::io("create file", &message, source))
    }
}

/// Copies a file or a directory.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::metadata(from)?;
    if found.is_file() {
        return fs::copy(from, to).map(drop);
    }
    if !found.is_dir() {
        // A pipe would block for ever.
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a directory"));
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
