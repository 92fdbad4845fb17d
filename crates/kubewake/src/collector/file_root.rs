//! Where the files of a collector are that a node of the embedded cluster runs.
//!
//! A container there has no file system of its own. It has a directory with its volumes at their mount paths,
//! which `KUBEWAKE_ROOT` names, and sees the machine's own files where that has none. On a real cluster the
//! variable is not set, and paths are unchanged.
//!
//! Only the command line knows of the root: the collector locates each path of a document through
//! [`ConfigSources`] when it loads the document, and opens plain paths.

use std::{
    io,
    path::{Path, PathBuf},
};

use kubewake_collector::service::SystemSources;
use kubewake_config::ConfigSources;

/// The variable that names the directory.
const ROOT_VARIABLE: &str = "KUBEWAKE_ROOT";

/// The environment and the files of this process, with the volumes under a root if there is one.
#[derive(Clone, Debug)]
pub(super) struct FileRoot {
    root: Option<PathBuf>,
}

impl FileRoot {
    pub(super) fn from_env() -> Self {
        Self { root: std::env::var_os(ROOT_VARIABLE).filter(|root| !root.is_empty()).map(PathBuf::from) }
    }
}

impl ConfigSources for FileRoot {
    fn env(&self, name: &str) -> Option<String> {
        SystemSources.env(name)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        SystemSources.read(path)
    }

    /// Relative paths, and paths that are already within the root, are unchanged. A file that does not exist yet
    /// is placed in the root if that has a volume for it, or its directory.
    fn locate(&self, path: &Path) -> PathBuf {
        self.root.as_deref().map_or_else(|| path.to_owned(), |root| path_under_root(root, path))
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
