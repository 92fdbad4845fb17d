//! Where positions are kept while the process is not running.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Larger files are not positions of ours: each stream takes some 300 bytes.
const MAX_STORED_BYTES: u64 = 64 << 20;

/// Keeps one value across restarts.
pub trait PositionStore: Send {
    /// The value that was saved last; `None` if there is none.
    fn load(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the value. When it fails, the previous one remains.
    fn save(&mut self, value: &[u8]) -> io::Result<()>;

    /// Moves a value that cannot be read out of the way, and returns where it is kept.
    fn set_aside(&mut self) -> io::Result<PathBuf>;

    /// What to call it in messages.
    fn path(&self) -> &Path;
}

/// A file in a state directory.
///
/// *Guarantees*: the file is replaced as a whole, and it is on the disk before the previous one is gone. The directory
/// is created for its owner alone.
#[derive(Debug)]
pub struct DirectoryStore {
    directory: PathBuf,
    path: PathBuf,
}

impl DirectoryStore {
    /// `name` may be any text, for example the name of a component.
    pub fn new(directory: PathBuf, name: &str) -> Self {
        let path = directory.join(format!("{}.positions", encode_name(name)));
        Self { directory, path }
    }

    fn temporary_path(&self) -> PathBuf {
        self.path.with_extension("tmp")
    }

    fn write_temporary(&self, value: &[u8]) -> io::Result<()> {
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(self.temporary_path())?;
        file.write_all(value)?;
        file.sync_all()
    }
}

impl PositionStore for DirectoryStore {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let mut value = Vec::new();
        file.take(MAX_STORED_BYTES + 1).read_to_end(&mut value)?;
        if value.len() as u64 > MAX_STORED_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too large"));
        }
        Ok(Some(value))
    }

    fn save(&mut self, value: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let written = self.write_temporary(value).and_then(|()| fs::rename(self.temporary_path(), &self.path));
        if written.is_err() {
            // A part of a file takes space that the next attempt may need.
            let _ = fs::remove_file(self.temporary_path());
        }
        written?;
        File::open(&self.directory)?.sync_all()
    }

    fn set_aside(&mut self) -> io::Result<PathBuf> {
        let kept = self.path.with_extension("bad");
        fs::rename(&self.path, &kept)?;
        Ok(kept)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes a name so that it is one component of a path, and differs from every other name.
fn encode_name(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02x}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = DirectoryStore::new(directory.path().join("new/state"), "file_log/pods.a");
        assert_eq!(store.load().unwrap(), None);
        store.save(b"one").unwrap();
        store.save(b"two").unwrap();
        assert_eq!(store.load().unwrap().unwrap(), b"two");
        assert!(store.path().ends_with("new/state/file_log%2fpods%2ea.positions"));
        let kept = store.set_aside().unwrap();
        assert_eq!(fs::read(kept).unwrap(), b"two");
        assert_eq!(store.load().unwrap(), None);
    }

    #[test]
    fn failed_save_keeps_the_previous_value() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = DirectoryStore::new(directory.path().to_path_buf(), "a");
        store.save(b"one").unwrap();
        fs::create_dir(store.temporary_path()).unwrap();
        assert!(store.save(b"two").is_err());
        assert_eq!(store.load().unwrap().unwrap(), b"one");
    }
}
