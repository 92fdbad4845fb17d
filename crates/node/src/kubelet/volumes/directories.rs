//! Volumes that are directories: of the pod, and of the host.

use std::{
    fs::{self, DirBuilder, FileType, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use kubewake_apiserver::schema::quantity::Quantity;

use super::Cause;

/// Blocks are counted in these, whatever the file system has.
const BLOCK: u64 = 512;

/// Makes a directory that is empty if it was not there.
pub(super) fn make(dir: &Path) -> Result<(), Cause> {
    fs::create_dir_all(dir).map_err(|source| Cause::io("make the directory", dir, source))
}

/// Makes a directory, with those above it, that other users of this machine cannot look into.
pub(super) fn make_closed(dir: &Path) -> Result<(), Cause> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| Cause::io("make the directory", dir, source))
}

/// Makes a directory that is nobody else's business, as there will be Secrets in it. Says where it is without links on the way: then
/// one can tell what is in it.
pub(super) fn private(dir: &Path) -> Result<PathBuf, Cause> {
    make(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(|source| Cause::io("close off", dir, source))?;
    dir.canonicalize().map_err(|source| Cause::io("find", dir, source))
}

/// A path of the host, if it is what it is said to be.
pub(super) fn host(path: &Path, kind: &str) -> Result<PathBuf, Cause> {
    let made = match kind {
        "DirectoryOrCreate" => DirBuilder::new().recursive(true).mode(0o755).create(path),
        "FileOrCreate" if !path.exists() => {
            OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map(drop)
        }
        _ => Ok(()),
    };
    made.map_err(|source| Cause::io("make", path, source))?;
    let is_it: fn(&FileType) -> bool = match kind {
        "" => return Ok(path.to_owned()),
        "DirectoryOrCreate" | "Directory" => FileType::is_dir,
        "FileOrCreate" | "File" => FileType::is_file,
        "Socket" => FileType::is_socket,
        "CharDevice" => FileType::is_char_device,
        "BlockDevice" => FileType::is_block_device,
        other => return Err(Cause::Refused(format!("{other} is an invalid volume type"))),
    };
    let found = fs::metadata(path).map(|found| found.file_type());
    if found.is_ok_and(|found| is_it(&found)) {
        return Ok(path.to_owned());
    }
    let what = match kind {
        "DirectoryOrCreate" | "Directory" => "directory",
        "FileOrCreate" | "File" => "file",
        "Socket" => "socket file",
        "CharDevice" => "character device",
        _ => "block device",
    };
    Err(Cause::Refused(format!("hostPath type check failed: {} is not a {what}", path.display())))
}

/// The most that an emptyDir may hold.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    volume: String,
    dir: PathBuf,
    written: String,
    bytes: u64,
}

impl Limit {
    /// None if the limit is none: zero is no limit.
    pub(super) fn new(volume: &str, dir: &Path, size: &str) -> Option<Self> {
        let bytes = u64::try_from(Quantity::parse(size).ok()?.units(0)).ok()?;
        let limit = Self { volume: volume.to_owned(), dir: dir.to_owned(), written: size.to_owned(), bytes };
        Some(limit).filter(|_| bytes > 0)
    }

    /// The kubelet's words for it, if there is more than there may be.
    pub(super) fn exceeded(&self) -> Option<String> {
        let mut left = self.bytes;
        let over = count(&self.dir, &mut left).is_err();
        over.then(|| format!("Usage of EmptyDir volume {:?} exceeds the limit {:?}. ", self.volume, self.written))
    }
}

struct Over;

/// Takes what a directory holds from what is left. Files may come and go meanwhile.
fn count(dir: &Path, left: &mut u64) -> Result<(), Over> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(io::Result::ok);
    for entry in entries {
        let Ok(found) = entry.metadata() else { continue };
        *left = left.checked_sub(found.blocks().saturating_mul(BLOCK)).ok_or(Over)?;
        if found.is_dir() {
            count(&entry.path(), left)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
