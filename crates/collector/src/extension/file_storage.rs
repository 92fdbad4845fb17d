//! `file_storage`: the directory in which components keep their state.
//!
//! *Guarantees*: the directory exists and can be written to when a component is built that names the extension.
//! *Does not*: look into the directory. Each component has a directory of its own in it, and cleans up after itself.

use std::{fs, io, os::unix::fs::DirBuilderExt, path::PathBuf};

use kubewake_config::model::FileStorage;

use super::Extension;
use crate::components::{BuildError, ExtensionContext};

pub(crate) fn prepare(settings: &FileStorage, _: &ExtensionContext<'_>) -> Result<Box<dyn Extension>, BuildError> {
    let directory = &settings.directory;
    let failed = |verb: &str, cause: &io::Error| {
        BuildError(format!("failed to {verb} the directory {}: {cause}", directory.display()))
    };
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(BuildError(format!("{} is not a directory", directory.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(mode) = settings.create_directory else {
                let help = "create it, or set `create_directory: true`";
                return Err(BuildError(format!("the directory {} does not exist: {help}", directory.display())));
            };
            let created = fs::DirBuilder::new().recursive(true).mode(mode).create(directory);
            created.map_err(|error| failed("create", &error))?;
        }
        Err(error) => return Err(failed("open", &error)),
    }
    Ok(Box::new(StorageDirectory(directory.clone())))
}

/// A directory that exists.
struct StorageDirectory(PathBuf);

impl Extension for StorageDirectory {
    fn state_directory(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use kubewake_config::ComponentId;

    use super::*;

    fn prepared(settings: &FileStorage) -> Result<Option<PathBuf>, String> {
        let id = ComponentId::new("file_storage");
        prepare(settings, &ExtensionContext { id: &id })
            .map(|extension| extension.state_directory())
            .map_err(|error| error.0)
    }

    #[test]
    fn directory_that_is_missing_is_created_only_when_asked_for() {
        let root = tempfile::tempdir().unwrap();
        let mut settings = FileStorage { directory: root.path().join("a/b"), create_directory: None };
        assert!(prepared(&settings).unwrap_err().contains("create_directory: true"));
        settings.create_directory = Some(0o700);
        assert_eq!(prepared(&settings), Ok(Some(settings.directory.clone())));
        settings.create_directory = None;
        assert_eq!(prepared(&settings), Ok(Some(settings.directory.clone())));
    }

    #[test]
    fn file_is_refused_as_a_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let settings = FileStorage { directory: file.path().to_owned(), create_directory: Some(0o700) };
        assert!(prepared(&settings).unwrap_err().contains("is not a directory"));
    }
}
