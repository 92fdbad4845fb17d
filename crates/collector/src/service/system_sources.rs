//! The environment and the files of this process, for documents.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use kubewake_config::{ConfigSources, MAX_DOCUMENT_BYTES};

/// The environment and the files of this process.
///
/// A variable that is not UTF-8 counts as not set. A file that is longer than a document may be is an error, so
/// that naming an endless one does no harm.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSources;

impl ConfigSources for SystemSources {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let mut content = String::new();
        let read = File::open(path)?.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_string(&mut content)?;
        if read > MAX_DOCUMENT_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the file is longer than {MAX_DOCUMENT_BYTES} bytes"),
            ));
        }
        Ok(content)
    }
}
