//! Maps paths to where files are when a node of the embedded cluster runs this program.
//!
//! A container there has no file system of its own. It has a directory with its volumes at their mount paths,
//! which `KUBEWAKE_ROOT` names, and sees the machine's own files where that has none. On a real cluster the
//! variable is not set, and paths are unchanged. Code that opens a file named by a user must call
//! [`mounted_path`] each time, since the result may change.

use std::path::{Path, PathBuf};

/// The variable that names the directory.
const ROOT_VARIABLE: &str = "KUBEWAKE_ROOT";

/// Returns the actual path of a file that is meant to be at `path`.
///
/// Relative paths, and paths that are already within the root, are unchanged. A file that does not exist yet is
/// placed in the root if that has a volume for it, or its directory.
pub fn mounted_path(path: &Path) -> PathBuf {
    match std::env::var_os(ROOT_VARIABLE) {
        Some(root) if !root.is_empty() => path_under_root(Path::new(&root), path),
        _ => path.to_owned(),
    }
}

fn path_under_root(root: &Path, path: &Path) -> PathBuf {
    let Ok(relative) = path.strip_prefix("/") else { return path.to_owned() };
    if path.starts_with(root) {
        return path.to_owned();
    }
    let inside = root.join(relative);
    let is_inside = inside.exists() || !path.exists() && is_in_volume(root, &inside);
    if is_inside { inside } else { path.to_owned() }
}

/// Whether a new file would be in a volume, which is behind a link, or in an existing directory.
fn is_in_volume(root: &Path, new: &Path) -> bool {
    let parents = || new.ancestors().skip(1).take_while(|parent| *parent != root);
    parents().any(Path::is_symlink) || new.parent().is_some_and(Path::is_dir)
}

#[cfg(test)]
mod tests;
