//! Fingerprints of files, so that a changed certificate is a changed component.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

use kubewake_config::mounted;

/// One number for the contents of all these files. A file that cannot be read has a print too: building the component
/// that needs it will say what is wrong.
pub(super) fn of(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        match fs::read(mounted(file)) {
            Ok(content) => content.hash(&mut hasher),
            Err(error) => error.kind().hash(&mut hasher),
        }
    }
    hasher.finish()
}
