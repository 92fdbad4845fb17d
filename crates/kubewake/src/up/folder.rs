//! The folder of an `up`: who holds it, and what it finds again.
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
//! Without `--data-dir` it is a folder in the user's state that is empty again when the process ends: the first one that nobody holds, so that several can
//! run side by side. *Guarantees.* One process holds a folder at a time; when it is gone, however it went, the folder is free.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::ports::Ports;

/// More run on no machine.
const MOST: u32 = 32;
/// The format of `ports.json`. Another version is not read.
const VERSION: u32 = 1;
/// A process id is shorter than this.
const LOCK_BYTES: u64 = 64;
/// So is a file of a few addresses.
const PORTS_BYTES: u64 = 4096;

/// A folder that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// What is in it goes with us.
    passing: bool,
    _lock: File,
}

#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    version: u32,
    #[serde(flatten)]
    ports: Ports,
}

impl Folder {
    /// Takes the folder that was named, or one of the user's state.
    pub(crate) fn take(data_dir: Option<&Path>) -> anyhow::Result<Self> {
        let Some(named) = data_dir else { return Self::take_passing() };
        let path = std::path::absolute(named)?;
        make(&path)?;
        match lock(&path).with_context(|| format!("the data directory {} cannot be used", path.display()))? {
            Ok(lock) => Ok(Self { path, passing: false, _lock: lock }),
            Err(holder) => bail!(
                "the data directory {} is in use by process {holder}: stop that one first, or name another directory",
                path.display()
            ),
        }
    }

    fn take_passing() -> anyhow::Result<Self> {
        for path in passing() {
            make(&path).context("name another place with --data-dir")?;
            if let Ok(lock) = lock(&path).with_context(|| format!("{} cannot be used", path.display()))? {
                return Ok(Self { path, passing: true, _lock: lock });
            }
        }
        bail!("{MOST} others run on this machine: stop one of them, or name a folder with --data-dir")
    }

    /// Where the administrator's kubeconfig is, unless it was asked for elsewhere.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// Where the API server reads where its spans go.
    pub(crate) fn tracing(&self) -> PathBuf {
        self.path.join("tracing.yaml")
    }

    /// Where the cluster keeps its objects.
    pub(crate) fn cluster(&self) -> Option<PathBuf> {
        (!self.passing).then(|| self.path.join("cluster"))
    }

    /// Where the viewer keeps traces.
    pub(crate) fn traces(&self) -> Option<PathBuf> {
        (!self.passing).then(|| self.path.join("traces"))
    }

    /// Where the parts listened the last time.
    pub(crate) fn ports(&self) -> anyhow::Result<Option<Ports>> {
        let path = self.path.join("ports.json");
        let text = match read(&path, PORTS_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let read: Remembered = serde_json::from_str(&text)
            .with_context(|| format!("{} is not what was written there: delete it", path.display()))?;
        if read.version != VERSION {
            bail!("{} has format version {}, and this program reads {VERSION}", path.display(), read.version);
        }
        Ok(Some(read.ports))
    }

    /// Remembers where the parts listen.
    pub(crate) fn remember(&self, ports: &Ports) -> anyhow::Result<()> {
        let path = self.path.join("ports.json");
        let text = serde_json::to_string(&Remembered { version: VERSION, ports: *ports })?;
        write(&path, &text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The lock stays: whoever looks at it now must not hold one that the next one does not see.
        for name in ["kubeconfig", "tracing.yaml", "ports.json"].iter().filter(|_| self.passing) {
            // What is left is overwritten by the next one.
            let _ = fs::remove_file(self.path.join(name));
        }
    }
}

/// The folders without a data directory, in the order in which they are taken.
fn passing() -> impl Iterator<Item = PathBuf> {
    let state = state();
    (1..=MOST).map(move |number| state.join(if number == 1 { "up".to_owned() } else { format!("up-{number}") }))
}

/// Where a user's programs keep their state.
pub(super) fn state() -> PathBuf {
    let of = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || of("HOME").map(|home| home.join(".local/state"));
    of("XDG_STATE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("kubewake")
}

/// Only its owner may look: there are credentials in it.
fn make(path: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("the directory {} cannot be made", path.display()))
}

/// The lock, or who has it.
fn lock(folder: &Path) -> io::Result<Result<File, String>> {
    let path = folder.join("lock");
    let mut file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(read(&path, LOCK_BYTES)?.trim().to_owned())),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Ok(file))
}

fn read(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// A file that appears whole, and that only its owner can read.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests;
