//! Snapshots: a new file with the live objects only.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use super::{NEW_LOG_FILE, frame::WalFrame, recover::HEADER};
use crate::store::{EventKind, state::StoreState, tree::ObjectTree};

/// The approximate size of a snapshot's frames, so that reading one takes little memory.
const SNAPSHOT_FRAME_BYTES: usize = 256 << 10;

/// All objects at one revision.
#[derive(Debug)]
pub(in crate::store) struct WalSnapshot {
    collections: Vec<ObjectTree>,
    revision: u64,
}

impl WalSnapshot {
    /// The content of a new store. etcd's first revision is 1, too.
    pub(super) fn empty() -> Self {
        Self { collections: Vec::new(), revision: 1 }
    }

    /// Captures the visible state, which copies a pointer for each collection.
    pub(in crate::store) fn capture(state: &StoreState) -> Self {
        let collections = state.collections().iter().map(|collection| collection.objects.clone()).collect();
        Self { collections, revision: state.revision }
    }

    /// Writes the new file and syncs it. The log then replaces the old file.
    pub(in crate::store) fn write(self, dir: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(true).mode(0o600).open(dir.join(NEW_LOG_FILE))?;
        let mut out = BufWriter::new(file);
        out.write_all(&HEADER)?;
        let mut frame = WalFrame::new();
        for object in self.collections.iter().flat_map(ObjectTree::iter) {
            frame.push(EventKind::Added, object);
            if frame.len() > SNAPSHOT_FRAME_BYTES {
                write_frame(&mut out, std::mem::replace(&mut frame, WalFrame::new()))?;
            }
        }
        frame.push_end(self.revision);
        write_frame(&mut out, frame)?;
        let file = out.into_inner()?;
        file.sync_all()?;
        Ok(file)
    }
}

fn write_frame(out: &mut impl io::Write, mut frame: WalFrame) -> io::Result<()> {
    frame.seal();
    out.write_all(frame.bytes()?)
}
