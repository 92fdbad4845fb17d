//! Writes the files of a volume atomically, as the kubelet does.
//!
//! ```text
//!   ..2026_07_31_12_00_00.83f1c0/app.yaml     the files
//!   ..data -> ..2026_07_31_12_00_00.83f1c0    the link that is swapped
//!   app.yaml -> ..data/app.yaml               the path that readers open
//! ```
//!
//! *Guaranteed*: a reader that opens `..data` once and reads below it sees one version. A write that is
//! interrupted at any point leaves the old or the new version, and the next write removes the rest. Unchanged
//! files are not written again.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Component, Path, PathBuf},
};

use jiff::Timestamp;

use super::projection::{FileProjection, Payload};

const DATA_DIR_NAME: &str = "..data";
const NEW_DATA_DIR_NAME: &str = "..data_tmp";

/// Replaces the files of a directory, and returns whether they changed. A removed directory is not created
/// again.
pub(super) fn write_payload(dir: &Path, payload: &Payload) -> io::Result<bool> {
    payload.keys().try_for_each(|path| check_path(path))?;
    let old = fs::read_link(dir.join(DATA_DIR_NAME)).ok();
    let changed = !old.as_ref().is_some_and(|old| has_payload(&dir.join(old), payload));
    if changed {
        swap_data_dir(dir, payload)?;
    }
    link_visible_files(dir, payload)?;
    remove_stale_paths(dir)?;
    Ok(changed)
}

/// A path must stay in the volume, and must not use reserved names.
fn check_path(path: &str) -> io::Result<()> {
    let mut parts = Path::new(path).components().peekable();
    let ours = path.starts_with("..");
    if parts.peek().is_none() || ours || !parts.all(|part| matches!(part, Component::Normal(_))) {
        let message = format!("{path:?} cannot be the path of a file in a volume");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Whether a directory has exactly these files.
fn has_payload(dir: &Path, payload: &Payload) -> bool {
    let mut found = BTreeSet::new();
    if collect_files(dir, Path::new(""), &mut found).is_err() || found.len() != payload.len() {
        return false;
    }
    payload.iter().all(|(path, file)| found.contains(Path::new(path)) && is_same_file(&dir.join(path), file))
}

/// The container controls the path: anything that cannot be the file is not read.
fn is_same_file(path: &Path, file: &FileProjection) -> bool {
    let alike = fs::symlink_metadata(path).is_ok_and(|found| {
        let same_length = u64::try_from(file.content.len()) == Ok(found.len());
        found.is_file() && same_length && found.permissions().mode() & 0o777 == file.mode
    });
    alike && fs::read(path).is_ok_and(|content| content == file.content)
}

fn collect_files(dir: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect_files(&entry.path(), &path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

fn swap_data_dir(dir: &Path, payload: &Payload) -> io::Result<()> {
    let name = format!("..{}.{:08x}", Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S"), fastrand::u32(..));
    let new = dir.join(&name);
    fs::create_dir(&new)?;
    for (path, file) in payload {
        write_file(&new.join(path), file)?;
    }
    let next = dir.join(NEW_DATA_DIR_NAME);
    if next.is_symlink() {
        fs::remove_file(&next)?;
    }
    symlink(&name, &next)?;
    fs::rename(&next, dir.join(DATA_DIR_NAME))
}

/// The file has its final permissions from the start.
fn write_file(path: &Path, file: &FileProjection) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    to.write_all(&file.content)?;
    to.set_permissions(Permissions::from_mode(file.mode))
}

/// Links each top-level file or directory. An existing path, such as a mount point, is left alone.
fn link_visible_files(dir: &Path, payload: &Payload) -> io::Result<()> {
    for name in top_level_names(payload) {
        let link = dir.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA_DIR_NAME).join(name), link)?;
        }
    }
    Ok(())
}

fn top_level_names(payload: &Payload) -> BTreeSet<&str> {
    payload.keys().filter_map(|path| path.split('/').find(|part| !part.is_empty())).collect()
}

/// Removes stale links and earlier versions.
fn remove_stale_paths(dir: &Path) -> io::Result<()> {
    let current = fs::read_link(dir.join(DATA_DIR_NAME))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = entry.path();
        let ours = name.as_encoded_bytes().starts_with(b"..");
        if ours && entry.file_type()?.is_dir() && Path::new(&name) != current {
            fs::remove_dir_all(&path)?;
        } else if !ours && fs::read_link(&path).is_ok_and(|to| to.starts_with(DATA_DIR_NAME)) && !path.exists() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
