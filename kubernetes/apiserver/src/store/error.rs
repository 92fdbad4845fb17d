//! The errors of the store.

use std::{io, path::PathBuf, sync::Arc};

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("failed to access {}", path.display())]
    Io {
        /// The file or directory that cannot be used.
        path: PathBuf,
        source: io::Error,
    },
    /// Another process has locked the directory.
    #[error("the data directory is in use by another server: {} is locked", path.display())]
    Locked {
        /// The locked file, which is in the directory.
        path: PathBuf,
    },
    /// The file has the format of another version of Kubewake.
    #[error("{} has format version {version}, this program reads version 1", path.display())]
    Version { path: PathBuf, version: u32 },
    /// The file is damaged in a part that was intact before.
    #[error("{} is damaged at byte {offset}: {why}", path.display())]
    Corrupt { path: PathBuf, offset: u64, why: String },
    /// The flusher thread could not be started.
    #[error("failed to start the writer thread")]
    Thread(#[source] io::Error),
}

/// Why a write failed. Nothing of it is visible.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    #[error("the object exists already")]
    Exists,
    #[error("the object does not exist")]
    NotFound,
    /// The object is not at the revision that the writer expects. `current` is readable.
    #[error("the object was changed: its revision is {current}")]
    Conflict { current: u64 },
    /// The object nests too deep to be decoded again.
    #[error("the object is nested too deeply")]
    TooDeep,
    /// The object is larger than any request may be.
    #[error("the object is too large: {0} bytes")]
    TooLarge(usize),
    #[error("failed to encode the object")]
    Encode(#[from] Arc<serde_json::Error>),
    /// The disk failed. If the process dies before the disk works again, the write may nevertheless be there
    /// after a restart.
    #[error("failed to write the store's log")]
    Disk(#[source] Arc<io::Error>),
    #[error("the store is closed")]
    Closed,
}
