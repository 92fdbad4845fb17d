//! The state directory of an `up` instance: its lock, and its persistent state.
//!
//! ```text
//!   DIR/lock           who holds it: locked while it is held, with the process id in it
//!   DIR/ports.json     where its parts listened
//!   DIR/kubeconfig     how to reach the cluster
//!   DIR/tracing.yaml   where the API server sends its spans
//!   DIR/cluster/       objects, claims and logs        only with --data-dir
//!   DIR/traces/        what the viewer holds           only with --data-dir
//! ```
//!
//! Without `--data-dir` it is a folder in the user's state that is emptied when the process ends: the first one
//! that no instance holds, so that several can run side by side. *Guaranteed.* One process holds a folder at a
//! time; after its end, for whatever reason, the folder is free.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::ports::ListenAddresses;

/// More instances on one machine are not expected.
const MAX_TEMPORARY_DIRECTORIES: u32 = 32;
/// Version of the format of `ports.json`. Other versions are ignored.
const FORMAT_VERSION: u32 = 1;
/// A process id is shorter than this.
const MAX_LOCK_BYTES: u64 = 64;
/// A file of a few addresses is shorter than this.
const MAX_PORTS_BYTES: u64 = 4096;

/// A folder that this process holds until this is dropped.
#[derive(Debug)]
pub(crate) struct StateDirectory {
    path: PathBuf,
    /// Its content is removed on drop.
    is_temporary: bool,
    _lock: File,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedPorts {
    version: u32,
    #[serde(flatten)]
    ports: ListenAddresses,
}

impl StateDirectory {
    /// Acquires the given folder, or one in the user's state.
    pub(crate) fn acquire(data_dir: Option<&Path>) -> anyhow::Result<Self> {
        let Some(named) = data_dir else { return Self::acquire_temporary() };
        let path = std::path::absolute(named)?;
        create_private_dir(&path)?;
        match try_lock(&path).with_context(|| format!("failed to lock the data directory {}", path.display()))? {
            Ok(lock) => Ok(Self { path, is_temporary: false, _lock: lock }),
            Err(holder) => bail!(
                "the data directory {} is in use by process {holder}: stop that process, or choose another directory",
                path.display()
            ),
        }
    }

    fn acquire_temporary() -> anyhow::Result<Self> {
        for path in temporary_paths() {
            create_private_dir(&path).context("choose another directory with --data-dir")?;
            if let Ok(lock) =
                try_lock(&path).with_context(|| format!("failed to lock the directory {}", path.display()))?
            {
                return Ok(Self { path, is_temporary: true, _lock: lock });
            }
        }
        bail!(
            "{MAX_TEMPORARY_DIRECTORIES} instances are running on this machine: stop one, or choose a directory with --data-dir"
        )
    }

    /// Default path of the administrator's kubeconfig.
    pub(crate) fn kubeconfig_path(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// Path of the API server's tracing configuration.
    pub(crate) fn tracing_config_path(&self) -> PathBuf {
        self.path.join("tracing.yaml")
    }

    pub(crate) fn cluster_dir(&self) -> Option<PathBuf> {
        (!self.is_temporary).then(|| self.path.join("cluster"))
    }

    pub(crate) fn traces_dir(&self) -> Option<PathBuf> {
        (!self.is_temporary).then(|| self.path.join("traces"))
    }

    /// The addresses of the previous run.
    pub(crate) fn load_ports(&self) -> anyhow::Result<Option<ListenAddresses>> {
        let path = self.path.join("ports.json");
        let text = match read_bounded(&path, MAX_PORTS_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context(|| format!("failed to read {}", path.display()))?,
        };
        let read: SavedPorts = serde_json::from_str(&text)
            .with_context(|| format!("failed to decode {}: delete the file", path.display()))?;
        if read.version != FORMAT_VERSION {
            bail!(
                "{} has format version {}, but this program supports only {FORMAT_VERSION}: delete the file",
                path.display(),
                read.version
            );
        }
        Ok(Some(read.ports))
    }

    /// Saves the addresses for the next run.
    pub(crate) fn save_ports(&self, ports: &ListenAddresses) -> anyhow::Result<()> {
        let path = self.path.join("ports.json");
        let text = serde_json::to_string(&SavedPorts { version: FORMAT_VERSION, ports: *ports })?;
        write_atomically(&path, &text).with_context(|| format!("failed to write {}", path.display()))
    }
}

impl Drop for StateDirectory {
    fn drop(&mut self) {
        // The lock file stays: a process that has just opened it must not lock a file that the next one does
        // not see.
        for name in ["kubeconfig", "tracing.yaml", "ports.json"].iter().filter(|_| self.is_temporary) {
            // A remaining file is overwritten by the next instance.
            let _ = fs::remove_file(self.path.join(name));
        }
    }
}

/// The folders without `--data-dir`, in order of preference.
fn temporary_paths() -> impl Iterator<Item = PathBuf> {
    let state = user_state_dir();
    (1..=MAX_TEMPORARY_DIRECTORIES)
        .map(move |number| state.join(if number == 1 { "up".to_owned() } else { format!("up-{number}") }))
}

/// The folder for state of a user's programs.
pub(super) fn user_state_dir() -> PathBuf {
    let of = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || of("HOME").map(|home| home.join(".local/state"));
    of("XDG_STATE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("kubewake")
}

/// The folder contains credentials, so that only its owner may access it.
fn create_private_dir(path: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("failed to create the directory {}", path.display()))
}

/// The lock, or the process that holds it.
fn try_lock(folder: &Path) -> io::Result<Result<File, String>> {
    let path = folder.join("lock");
    let mut file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(read_bounded(&path, MAX_LOCK_BYTES)?.trim().to_owned())),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Ok(file))
}

fn read_bounded(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a file atomically, readable for its owner only.
pub(crate) fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests;
