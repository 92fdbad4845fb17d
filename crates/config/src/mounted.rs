//! Where files are when a node of the embedded cluster runs this program.
//!
//! There a container has no file system of its own. It has a directory with its volumes at their mount paths, which
//! `KUBEWAKE_ROOT` names, and sees the machine's own files where that has none. On a real cluster the variable is not set, and a
//! path is what it says. Whoever opens a file that a user named asks here first, each time: what is there may change.

use std::path::{Path, PathBuf};

/// The variable that names the directory.
const ROOT: &str = "KUBEWAKE_ROOT";

/// Where a file really is that is meant to be at `path`.
///
/// A relative path, and one that is in the root already, stays as it is. What is nowhere yet is in the root if it is in a volume
/// there, or in a directory that the root has.
pub fn mounted(path: &Path) -> PathBuf {
    match std::env::var_os(ROOT) {
        Some(root) if !root.is_empty() => under(Path::new(&root), path),
        _ => path.to_owned(),
    }
}

fn under(root: &Path, path: &Path) -> PathBuf {
    let Ok(relative) = path.strip_prefix("/") else { return path.to_owned() };
    if path.starts_with(root) {
        return path.to_owned();
    }
    let inside = root.join(relative);
    let is_inside = inside.exists() || !path.exists() && belongs(root, &inside);
    if is_inside { inside } else { path.to_owned() }
}

/// Whether something new would be in a volume, which is behind a link, or in a directory that is there.
fn belongs(root: &Path, new: &Path) -> bool {
    let parents = || new.ancestors().skip(1).take_while(|parent| *parent != root);
    parents().any(Path::is_symlink) || new.parent().is_some_and(Path::is_dir)
}

#[cfg(test)]
mod tests;
