//! The free space of a file system, which tests replace.

use std::sync::Arc;

use rustix::fs::StatVfs;

use crate::open_file::OpenFile;

/// Bytes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpaceOnDisk {
    pub(crate) total: u64,
    /// What programs without special rights can use.
    pub(crate) free: u64,
}

pub(crate) trait DiskSpace: Send + Sync {
    /// `None` if it is not known.
    fn space_of(&self, file: &OpenFile) -> Option<SpaceOnDisk>;
}

struct FileSystems;

pub(crate) fn default_disk() -> Arc<dyn DiskSpace> {
    Arc::new(FileSystems)
}

impl DiskSpace for FileSystems {
    fn space_of(&self, file: &OpenFile) -> Option<SpaceOnDisk> {
        let StatVfs { f_frsize, f_blocks, f_bavail, .. } = rustix::fs::fstatvfs(file.file()).ok()?;
        Some(SpaceOnDisk { total: f_blocks.saturating_mul(f_frsize), free: f_bavail.saturating_mul(f_frsize) })
    }
}
