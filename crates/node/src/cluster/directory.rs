//! The files of a cluster: those of its run, which go with it, and those that it finds again.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use kubewake_apiserver::server;
use serde::{Deserialize, Serialize};

use super::StartError;
use crate::addresses::Block;

/// The format of the file below. Another version is not read.
const VERSION: u32 = 1;

/// What a data directory says about the cluster, beside its objects.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    version: u32,
    /// The B of 127.B.0.0/16: Services keep their addresses.
    block: u8,
}

/// The directories of a cluster.
#[derive(Debug)]
pub(super) struct Directory {
    run: PathBuf,
    data: Option<PathBuf>,
}

impl Directory {
    /// Makes a directory for the run. Whoever guards the cluster removes it.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, StartError> {
        // Pods run elsewhere: every path that they are given is a whole one.
        let parent = absolute(&std::env::temp_dir())?;
        let data = data.map(absolute).transpose()?;
        server::check_data_dir(data.as_deref())?;
        let only_ours = Permissions::from_mode(0o700);
        let run = tempfile::Builder::new().prefix("kubewake-").permissions(only_ours).tempdir_in(&parent);
        let run = run.map_err(|source| StartError::Directory { path: parent, source })?.keep();
        Ok(Self { run, data })
    }

    /// What goes with the cluster.
    pub(super) fn run(&self) -> &Path {
        &self.run
    }

    /// What claims hold: it goes with the cluster only if everything else does.
    pub(super) fn claims(&self) -> PathBuf {
        self.data.as_ref().unwrap_or(&self.run).join("claims")
    }

    /// What containers said: it goes with their pods, and with the cluster only if everything else does.
    pub(super) fn logs(&self) -> PathBuf {
        self.data.as_ref().unwrap_or(&self.run).join("logs")
    }

    /// The addresses of the cluster: those that it had before, if it is known.
    pub(super) fn block(&self) -> Result<Block, StartError> {
        let taken = match &self.data {
            Some(data) => self.block_of(data),
            None => Block::take(None).map_err(StartError::Addresses),
        };
        taken.inspect_err(|_| self.remove())
    }

    /// Removes what goes with the cluster, where nobody guards it yet.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.run);
    }

    fn block_of(&self, data: &Path) -> Result<Block, StartError> {
        let path = data.join("addresses.json");
        let unusable = |source| StartError::File { path: path.clone(), source };
        fs::create_dir_all(data).map_err(|source| StartError::Directory { path: data.to_owned(), source })?;
        let before = read(&path).map_err(unusable)?;
        let block = Block::take(before).map_err(StartError::Addresses)?;
        match before {
            // Most likely the cluster that has the addresses is the one that is here.
            Some(before) if before != block.number() && server::is_data_dir_in_use(data) => {
                Err(StartError::InUse(data.to_owned()))
            }
            Some(before) if before != block.number() => {
                Err(StartError::Taken { directory: data.to_owned(), block: before })
            }
            Some(_) => Ok(block),
            None => write(&path, block.number()).map_err(unusable).map(|()| block),
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, StartError> {
    std::path::absolute(path).map_err(|source| StartError::Directory { path: path.to_owned(), source })
}

fn read(path: &Path) -> io::Result<Option<u8>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let remembered: Remembered = serde_json::from_slice(&text)?;
    if remembered.version != VERSION {
        let message = format!("it has format version {}, and this program reads {VERSION}", remembered.version);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(Some(remembered.block))
}

fn write(path: &Path, block: u8) -> io::Result<()> {
    let text = serde_json::to_vec(&Remembered { version: VERSION, block })?;
    let part = path.with_extension("part");
    fs::write(&part, text)?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests;
