//! Writes the files of a volume at once, as the kubelet does.
//!
//! ```text
//!   ..2026_07_31_12_00_00.83f1c0/app.yaml     the files themselves
//!   ..data -> ..2026_07_31_12_00_00.83f1c0    what is swapped
//!   app.yaml -> ..data/app.yaml               what readers open
//! ```
//!
//! *Guarantees.* Who opens `..data` once and reads below it sees one version. A write that is cut short anywhere leaves the old
//! version or the new one, and the next write clears away the rest. Files that are the same are not written again.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Component, Path, PathBuf},
};

use jiff::Timestamp;

use super::payload::{File, Payload};

const DATA: &str = "..data";
const NEXT: &str = "..data_tmp";

/// Makes these the files of a directory, and says whether they are others than before. A directory that was removed does not come
/// back.
pub(super) fn write(dir: &Path, payload: &Payload) -> io::Result<bool> {
    payload.keys().try_for_each(|path| check(path))?;
    let old = fs::read_link(dir.join(DATA)).ok();
    let changed = !old.as_ref().is_some_and(|old| holds(&dir.join(old), payload));
    if changed {
        swap(dir, payload)?;
    }
    show(dir, payload)?;
    tidy(dir)?;
    Ok(changed)
}

/// A path must stay in the volume, and off the names that are ours.
fn check(path: &str) -> io::Result<()> {
    let mut parts = Path::new(path).components().peekable();
    let ours = path.starts_with("..");
    if parts.peek().is_none() || ours || !parts.all(|part| matches!(part, Component::Normal(_))) {
        let message = format!("{path:?} cannot be the path of a file in a volume");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Whether a directory has exactly these files.
fn holds(dir: &Path, payload: &Payload) -> bool {
    let mut found = BTreeSet::new();
    if files(dir, Path::new(""), &mut found).is_err() || found.len() != payload.len() {
        return false;
    }
    payload.iter().all(|(path, file)| found.contains(Path::new(path)) && is_same(&dir.join(path), file))
}

/// A container may have put anything there: what cannot be the file is not read.
fn is_same(path: &Path, file: &File) -> bool {
    let alike = fs::symlink_metadata(path).is_ok_and(|found| {
        let same_length = u64::try_from(file.content.len()) == Ok(found.len());
        found.is_file() && same_length && found.permissions().mode() & 0o777 == file.mode
    });
    alike && fs::read(path).is_ok_and(|content| content == file.content)
}

fn files(dir: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files(&entry.path(), &path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

fn swap(dir: &Path, payload: &Payload) -> io::Result<()> {
    let name = format!("..{}.{:08x}", Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S"), fastrand::u32(..));
    let new = dir.join(&name);
    fs::create_dir(&new)?;
    for (path, file) in payload {
        write_file(&new.join(path), file)?;
    }
    let next = dir.join(NEXT);
    if next.is_symlink() {
        fs::remove_file(&next)?;
    }
    symlink(&name, &next)?;
    fs::rename(&next, dir.join(DATA))
}

/// It has nobody else's permissions from the first moment on.
fn write_file(path: &Path, file: &File) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    to.write_all(&file.content)?;
    to.set_permissions(Permissions::from_mode(file.mode))
}

/// A link for each file or directory at the top. What somebody mounted there stays.
fn show(dir: &Path, payload: &Payload) -> io::Result<()> {
    for name in tops(payload) {
        let link = dir.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(name), link)?;
        }
    }
    Ok(())
}

fn tops(payload: &Payload) -> BTreeSet<&str> {
    payload.keys().filter_map(|path| path.split('/').find(|part| !part.is_empty())).collect()
}

/// Removes links to what is not there any more, and earlier versions.
fn tidy(dir: &Path) -> io::Result<()> {
    let current = fs::read_link(dir.join(DATA))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let ours = name.as_encoded_bytes().starts_with(b"..");
        if ours && entry.file_type()?.is_dir() && Path::new(&name) != current {
            fs::remove_dir_all(&path)?;
        } else if !ours && fs::read_link(&path).is_ok_and(|to| to.starts_with(DATA)) && !path.exists() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
