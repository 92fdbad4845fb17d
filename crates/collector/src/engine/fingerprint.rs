//! Fingerprints of files, so that a changed certificate is a changed component.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

/// One number for the contents of all these files. An unreadable file has a fingerprint too: building its
/// component reports the error.
pub(super) fn combined_fingerprint(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        match fs::read(file) {
            Ok(content) => content.hash(&mut hasher),
            Err(error) => error.kind().hash(&mut hasher),
        }
    }
    hasher.finish()
}
