//! Files that are written atomically, and private ones that only their owner can read.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// Writes a file under a temporary name and renames it. A private file has mode 0600 from its creation on.
///
/// It is not synced: a power cut may leave an empty file, which readers of these files treat as missing.
pub fn write(path: &Path, contents: &str, private: bool) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory).map_err(|error| match error.kind() {
        // The system's message (a file exists) does not name the actual problem.
        io::ErrorKind::AlreadyExists => {
            io::Error::new(io::ErrorKind::NotADirectory, format!("{directory:?} is not a directory"))
        }
        _ => error,
    })?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let temporary = directory.join(format!(".{}.{:016x}", name.to_string_lossy(), fastrand::u64(..)));
    let mode = if private { 0o600 } else { 0o644 };
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)
        .and_then(|mut file| file.write_all(contents.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // A second error adds nothing; the first one is returned.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Warns about a private key that others can read.
pub fn warn_if_shared(path: &Path) {
    let mode = fs::metadata(path).map_or(0, |file| file.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let file = path.display();
        tracing::warn!(%file, mode = format!("{mode:04o}"), "private key is readable by others: chmod 600 {file}");
    }
}

/// The content of a file; `None` if it does not exist or is empty.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
