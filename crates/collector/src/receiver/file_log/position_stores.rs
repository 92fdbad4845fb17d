//! Where positions are kept: on the disk, or in memory as long as the process lives.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use kubewake_log_files::{DirectoryStore, PositionStore};
use kubewake_runtime::lock::Mutex;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PositionPlace {
    Directory(PathBuf),
    Memory,
}

/// The name of the file below the directory of the receiver.
const FILE_NAME: &str = "file_log";

/// Positions of a receiver without a directory for its state. A successor continues from them.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryPositions(Arc<Mutex<Option<Vec<u8>>>>);

impl PositionStore for MemoryPositions {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().clone())
    }

    fn save(&mut self, value: &[u8]) -> io::Result<()> {
        *self.0.lock() = Some(value.to_vec());
        Ok(())
    }

    fn set_aside(&mut self) -> io::Result<PathBuf> {
        self.0.lock().take();
        Ok(PathBuf::from("memory"))
    }

    fn path(&self) -> &Path {
        Path::new("memory")
    }
}

/// Opens the store of a place.
pub(super) fn open(place: &PositionPlace, memory: &MemoryPositions) -> Box<dyn PositionStore> {
    match place {
        PositionPlace::Directory(directory) => Box::new(DirectoryStore::new(directory.clone(), FILE_NAME)),
        PositionPlace::Memory => Box::new(memory.clone()),
    }
}

/// Moves positions to another place, if that has none. False if the positions there are others.
pub(super) fn move_positions(from: &PositionPlace, to: &PositionPlace, memory: &MemoryPositions) -> bool {
    let mut target = open(to, memory);
    let has_none = target.load().is_ok_and(|value| value.is_none());
    let value = open(from, memory).load();
    has_none && value.is_ok_and(|value| value.is_some_and(|value| target.save(&value).is_ok()))
}
