//! Volumes that are directories of the pod or of the host.

use std::{
    fs::{self, DirBuilder, FileType, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use kubewake_apiserver::schema::quantity::Quantity;

use super::VolumeErrorCause;

/// The unit of `st_blocks`, whatever the file system.
const STAT_BLOCK_BYTES: u64 = 512;

/// Creates a directory if it does not exist.
pub(super) fn make_dir(dir: &Path) -> Result<(), VolumeErrorCause> {
    fs::create_dir_all(dir).map_err(|source| VolumeErrorCause::io("create directory", dir, source))
}

/// Creates a directory and its parents, not accessible by other users of this machine.
pub(super) fn make_dir_unreadable_by_others(dir: &Path) -> Result<(), VolumeErrorCause> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| VolumeErrorCause::io("create directory", dir, source))
}

/// Creates a directory that only the owner can access, as it may hold Secrets. Returns its canonical path, so
/// that paths below it can be compared.
pub(super) fn make_private_dir(dir: &Path) -> Result<PathBuf, VolumeErrorCause> {
    make_dir(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o700))
        .map_err(|source| VolumeErrorCause::io("restrict access to", dir, source))?;
    dir.canonicalize().map_err(|source| VolumeErrorCause::io("resolve", dir, source))
}

/// Checks that the file of a host path has the declared type. Messages have the path that was given.
pub(super) fn check_host_path(given: &str, path: &Path, kind: &str) -> Result<(), VolumeErrorCause> {
    let made = match kind {
        "DirectoryOrCreate" => DirBuilder::new().recursive(true).mode(0o755).create(path),
        "FileOrCreate" if !path.exists() => {
            OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map(drop)
        }
        _ => Ok(()),
    };
    made.map_err(|source| VolumeErrorCause::io("create", path, source))?;
    let is_it: fn(&FileType) -> bool = match kind {
        "" => return Ok(()),
        "DirectoryOrCreate" | "Directory" => FileType::is_dir,
        "FileOrCreate" | "File" => FileType::is_file,
        "Socket" => FileType::is_socket,
        "CharDevice" => FileType::is_char_device,
        "BlockDevice" => FileType::is_block_device,
        other => return Err(VolumeErrorCause::Refused(format!("{other} is an invalid volume type"))),
    };
    let found = fs::metadata(path).map(|found| found.file_type());
    if found.is_ok_and(|found| is_it(&found)) {
        return Ok(());
    }
    let what = match kind {
        "DirectoryOrCreate" | "Directory" => "directory",
        "FileOrCreate" | "File" => "file",
        "Socket" => "socket file",
        "CharDevice" => "character device",
        _ => "block device",
    };
    Err(VolumeErrorCause::Refused(format!("hostPath type check failed: {given} is not a {what}")))
}

/// The size limit of an emptyDir.
#[derive(Clone, Debug)]
pub(super) struct SizeLimit {
    volume: String,
    dir: PathBuf,
    written: String,
    bytes: u64,
}

impl SizeLimit {
    /// None without a limit; zero means no limit.
    pub(super) fn new(volume: &str, dir: &Path, size: &str) -> Option<Self> {
        let bytes = u64::try_from(Quantity::parse(size).ok()?.units(0)).ok()?;
        let limit = Self { volume: volume.to_owned(), dir: dir.to_owned(), written: size.to_owned(), bytes };
        Some(limit).filter(|_| bytes > 0)
    }

    /// The kubelet's message if the limit is exceeded.
    pub(super) fn exceeded_message(&self) -> Option<String> {
        let mut left = self.bytes;
        let over = subtract_usage(&self.dir, &mut left).is_err();
        over.then(|| format!("Usage of EmptyDir volume {:?} exceeds the limit {:?}. ", self.volume, self.written))
    }
}

struct LimitExceeded;

/// Subtracts the usage of a directory from the remaining bytes. Files may come and go meanwhile.
fn subtract_usage(dir: &Path, left: &mut u64) -> Result<(), LimitExceeded> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(io::Result::ok);
    for entry in entries {
        let Ok(found) = entry.metadata() else { continue };
        *left = left.checked_sub(found.blocks().saturating_mul(STAT_BLOCK_BYTES)).ok_or(LimitExceeded)?;
        if found.is_dir() {
            subtract_usage(&entry.path(), left)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
