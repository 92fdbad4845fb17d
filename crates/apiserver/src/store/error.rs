//! What can go wrong.

use std::{io, path::PathBuf, sync::Arc};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The disk said no.
    #[error("cannot use {}", path.display())]
    Io {
        /// What could not be used.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has the directory.
    #[error("another server uses this directory: {} is locked", path.display())]
    Locked {
        /// The file that is locked.
        path: PathBuf,
    },
    /// The file is of a version of Kubewake that knows another format.
    #[error("{} has format version {version}, this program reads version 1", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in it.
        version: u32,
    },
    /// The file is damaged where it had been whole.
    #[error("{} is damaged at byte {offset}: {why}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The thread that writes could not be started.
    #[error("cannot start the thread that writes")]
    Thread(#[source] io::Error),
}

/// Why a write did not happen. Nothing of it is visible.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// There is an object already.
    #[error("the object exists already")]
    Exists,
    /// There is no object.
    #[error("there is no such object")]
    NotFound,
    /// The object is not at the revision that the writer expects. What it is at can be read.
    #[error("the object is at revision {current} now")]
    Conflict {
        /// Where it is.
        current: u64,
    },
    /// It nests so deep that it could not be read back.
    #[error("the object nests too deep")]
    TooDeep,
    /// It is larger than any request may be.
    #[error("the object has {0} bytes, which is too large")]
    TooLarge(usize),
    /// It cannot be encoded.
    #[error("the object cannot be encoded")]
    Encode(#[from] Arc<serde_json::Error>),
    /// The disk said no. Should the process die before the disk works again, the write may be there after a restart nevertheless.
    #[error("the store's log cannot be written")]
    Disk(#[source] Arc<io::Error>),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
