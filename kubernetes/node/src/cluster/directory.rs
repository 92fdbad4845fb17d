//! The files of a cluster: those of one run, which are removed with it, and those that the next run finds
//! again.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use kubewake_apiserver::server;
use serde::{Deserialize, Serialize};

use super::ClusterStartError;
use crate::addresses::AddressBlock;

/// The format of the record. Other versions are not read.
const RECORD_VERSION: u32 = 1;

/// The record of the cluster in its data directory, besides the objects.
#[derive(Debug, Serialize, Deserialize)]
struct ClusterRecord {
    version: u32,
    /// The B of 127.B.0.0/16, so that Services keep their addresses.
    block: u8,
}

/// The directories of a cluster.
#[derive(Debug)]
pub(super) struct ClusterDirectory {
    run: PathBuf,
    data: Option<PathBuf>,
}

impl ClusterDirectory {
    /// Creates a directory for this run. The cleanup guard removes it.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, ClusterStartError> {
        // Pods have other working directories, so every path that they get is absolute.
        let parent = absolute(&std::env::temp_dir())?;
        let data = data.map(absolute).transpose()?;
        server::check_data_dir(data.as_deref())?;
        let only_ours = Permissions::from_mode(0o700);
        let run = tempfile::Builder::new().prefix("kubewake-").permissions(only_ours).tempdir_in(&parent);
        let run = run.map_err(|source| ClusterStartError::Directory { path: parent, source })?.keep();
        Ok(Self { run, data })
    }

    /// The directory of this run.
    pub(super) fn run(&self) -> &Path {
        &self.run
    }

    /// The directories of claims: kept in the data directory, if there is one.
    pub(super) fn claims(&self) -> PathBuf {
        self.data.as_ref().unwrap_or(&self.run).join("claims")
    }

    /// The files that a node has like a machine of its own, such as the logs of its containers: kept in the data
    /// directory, if there is one.
    pub(super) fn host(&self, node: &str) -> PathBuf {
        self.data.as_ref().unwrap_or(&self.run).join("hosts").join(node)
    }

    /// Reserves the address block of the cluster: the recorded one if there is one.
    pub(super) fn acquire_block(&self) -> Result<AddressBlock, ClusterStartError> {
        let taken = match &self.data {
            Some(data) => self.recorded_block(data),
            None => AddressBlock::acquire(None).map_err(ClusterStartError::Addresses),
        };
        taken.inspect_err(|_| self.remove())
    }

    /// Removes the directory of this run, as long as no guard does.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.run);
    }

    fn recorded_block(&self, data: &Path) -> Result<AddressBlock, ClusterStartError> {
        let path = data.join("addresses.json");
        let unusable = |source| ClusterStartError::File { path: path.clone(), source };
        fs::create_dir_all(data).map_err(|source| ClusterStartError::Directory { path: data.to_owned(), source })?;
        let before = read_record(&path).map_err(unusable)?;
        let block = AddressBlock::acquire(before).map_err(ClusterStartError::Addresses)?;
        match before {
            // The address block is probably in use by the cluster that has this data directory open.
            Some(before) if before != block.number() && server::is_data_dir_in_use(data) => {
                Err(ClusterStartError::InUse(data.to_owned()))
            }
            Some(before) if before != block.number() => {
                Err(ClusterStartError::AddressBlockTaken { directory: data.to_owned(), block: before })
            }
            Some(_) => Ok(block),
            None => write_record(&path, block.number()).map_err(unusable).map(|()| block),
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, ClusterStartError> {
    std::path::absolute(path).map_err(|source| ClusterStartError::Directory { path: path.to_owned(), source })
}

fn read_record(path: &Path) -> io::Result<Option<u8>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let remembered: ClusterRecord = serde_json::from_slice(&text)?;
    if remembered.version != RECORD_VERSION {
        let message = format!(
            "the file has format version {}, but this program reads version {RECORD_VERSION}",
            remembered.version
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(Some(remembered.block))
}

fn write_record(path: &Path, block: u8) -> io::Result<()> {
    let text = serde_json::to_vec(&ClusterRecord { version: RECORD_VERSION, block })?;
    let part = path.with_extension("part");
    fs::write(&part, text)?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests;
