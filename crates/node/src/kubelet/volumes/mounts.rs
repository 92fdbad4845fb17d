//! The root of a container: a directory in which each mount path is a link to its volume.
//!
//! A mount path below another one is a link within that volume, as the kubelet makes a directory there to mount to.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

use super::{MountError, within};

/// Where a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its files are written by us.
    Written(PathBuf),
    /// Its files are the pods'.
    Directory(PathBuf),
    /// Its files are the host's.
    Host(PathBuf),
}

impl Place {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Written(path) | Self::Directory(path) | Self::Host(path) => path,
        }
    }
}

/// A volume, or a part of it, at a path.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    /// Relative to the root.
    pub(super) at: PathBuf,
    given: String,
    place: Place,
    part: Option<PathBuf>,
}

impl Mount {
    pub(super) fn new(path: &str, place: &Place, sub_path: Option<&str>) -> Result<Self, MountError> {
        let refuse = |why: &str| Err(MountError::Mount { path: path.to_owned(), why: why.to_owned() });
        let at = within(Path::new(path));
        if at.as_os_str().is_empty() {
            return refuse("a volume cannot be mounted at \"/\"");
        }
        let part = sub_path.filter(|part| !part.is_empty()).map(PathBuf::from);
        let leaves =
            |part: &PathBuf| !part.components().all(|one| matches!(one, Component::Normal(_) | Component::CurDir));
        if part.as_ref().is_some_and(leaves) {
            return refuse("the subPath must be a relative path without \"..\"");
        }
        Ok(Self { at, given: path.to_owned(), place: place.clone(), part })
    }

    fn refuse(&self, why: impl Into<String>) -> MountError {
        MountError::Mount { path: self.given.clone(), why: why.into() }
    }

    fn failed(&self, error: &io::Error) -> MountError {
        self.refuse(error.to_string())
    }
}

/// A root to make.
pub(super) struct Job {
    /// The container's directory.
    pub(super) dir: PathBuf,
    /// The pod's directory.
    pub(super) pod: PathBuf,
    pub(super) mounts: Vec<Mount>,
    /// Where the container writes why it ended, relative to the root.
    pub(super) message: Option<PathBuf>,
}

impl Job {
    /// Makes the root anew. Says which links there are now outside of the pod's directory.
    pub(super) fn run(&mut self) -> Result<Vec<PathBuf>, MountError> {
        let root = self.dir.join("root");
        // Links are removed, and not what they lead to.
        for old in [&root, &self.copies()] {
            match fs::remove_dir_all(old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(MountError::io("remove", old, error));
                }
                _ => {}
            }
        }
        fs::create_dir_all(&root).map_err(|source| MountError::io("make the directory", &root, source))?;
        // Paths come before those below them.
        self.mounts.sort_by(|one, other| one.at.cmp(&other.at));
        let mut outside = Vec::new();
        for (index, mount) in self.mounts.iter().enumerate() {
            let target = self.target(index, mount)?;
            let link = self.link(&root.join(&mount.at), &target, mount)?;
            outside.extend(Some(link).filter(|link| !link.starts_with(&self.pod)));
        }
        self.furnish(&root)?;
        Ok(outside)
    }

    /// Where parts of volumes are that do not change with them.
    fn copies(&self) -> PathBuf {
        self.dir.join("copies")
    }

    /// What is to be seen at a mount path.
    fn target(&self, index: usize, mount: &Mount) -> Result<PathBuf, MountError> {
        let Some(part) = &mount.part else { return Ok(mount.place.path().to_owned()) };
        let original = mount.place.path().join(part);
        if let Place::Written(_) = mount.place {
            let copy = self.copies().join(index.to_string());
            // The files of one version, also if there is a new one meanwhile.
            let original = original.canonicalize();
            let copied = fs::create_dir_all(self.copies()).and_then(|()| copy_all(&original?, &copy));
            copied.map_err(|error| mount.refuse(format!("failed to copy subPath {}: {error}", part.display())))?;
            return Ok(copy);
        }
        if !original.exists() {
            fs::create_dir_all(&original).map_err(|error| mount.failed(&error))?;
        }
        Ok(original)
    }

    /// Makes the link, and says where it really is: below another mount it is in that volume.
    fn link(&self, at: &Path, target: &Path, mount: &Mount) -> Result<PathBuf, MountError> {
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
            return Err(mount.refuse("this is no path"));
        };
        fs::create_dir_all(parent).map_err(|error| mount.failed(&error))?;
        let at = parent.canonicalize().map_err(|error| mount.failed(&error))?.join(name);
        match fs::read_link(&at) {
            Ok(found) if found == target => return Ok(at),
            // Of a pod that had the same volume, or still has.
            Ok(found) if self.is_of_another_pod(&found) => {
                fs::remove_file(&at).map_err(|error| mount.failed(&error))?;
            }
            // An empty directory is what another container, or a cluster, makes to mount to.
            _ => drop(fs::remove_dir(&at)),
        }
        symlink(target, &at).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                mount.refuse("the volume that it is in has something else there already, which a link cannot cover")
            }
            _ => mount.failed(&error),
        })?;
        Ok(at)
    }

    fn is_of_another_pod(&self, target: &Path) -> bool {
        let pods = self.pod.parent().unwrap_or(&self.pod);
        target.starts_with(pods) && !target.starts_with(&self.pod)
    }

    /// What every container has: a place for temporary files, and one for its last words.
    fn furnish(&self, root: &Path) -> Result<(), MountError> {
        let tmp = root.join("tmp");
        fs::create_dir_all(&tmp).map_err(|source| MountError::io("make the directory", &tmp, source))?;
        let Some(message) = self.message.as_ref().map(|message| root.join(message)) else { return Ok(()) };
        let make = |message: &Path| {
            let parent = message.parent().unwrap_or(root);
            fs::create_dir_all(parent)?;
            // In a directory of the host it would stay.
            if parent.canonicalize()?.starts_with(&self.pod) {
                fs::OpenOptions::new().append(true).create(true).open(message)?;
            }
            Ok(())
        };
        make(&message).map_err(|source| MountError::io("make", &message, source))
    }
}

/// Copies a file or a directory as it is now.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::metadata(from)?;
    if found.is_file() {
        return fs::copy(from, to).map(drop);
    }
    if !found.is_dir() {
        // A pipe would never end.
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
