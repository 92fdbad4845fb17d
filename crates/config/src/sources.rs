//! The environment and files that `${env:…}` and `${file:…}` read.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

/// Access to the environment and files, so that reading a document touches nothing that the caller did not
/// provide.
pub trait ConfigSources {
    /// The value of an environment variable, if it is set.
    fn env(&self, name: &str) -> Option<String>;

    /// The content of a file at a located path. A relative path is relative to wherever the implementation reads.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Where a file is that the document calls `path`; the file need not exist. Every path of a loaded document
    /// is located once, so that users of the document open files without further ado.
    fn locate(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// Only the variables and files that were given: for tests, and for documents whose references are known.
#[derive(Clone, Default)]
pub struct FixedSources {
    env: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, String>,
}

impl FixedSources {
    /// No variables and no files.
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>, content: impl Into<String>) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }
}

impl ConfigSources for FixedSources {
    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
