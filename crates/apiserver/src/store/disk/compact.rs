//! Snapshots: a new file with the objects alone.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use super::{NEW, frame::Frame, recover::HEADER};
use crate::store::{EventKind, state::State, tree::Tree};

/// Frames of a snapshot are about as large, so that reading one takes little memory.
const FRAME: usize = 256 << 10;

/// All objects at one revision.
#[derive(Debug)]
pub(in crate::store) struct Snapshot {
    collections: Vec<Tree>,
    revision: u64,
}

impl Snapshot {
    /// What a new store holds. etcd's first revision is 1, too.
    pub(super) fn empty() -> Self {
        Self { collections: Vec::new(), revision: 1 }
    }

    /// What is visible now. It copies a pointer for each collection.
    pub(in crate::store) fn take(state: &State) -> Self {
        let collections = state.all().iter().map(|collection| collection.objects.clone()).collect();
        Self { collections, revision: state.revision }
    }

    /// Writes the new file and syncs it. It is to be put in its place by the log.
    pub(in crate::store) fn write(self, dir: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(dir.join(NEW))?;
        let mut out = BufWriter::new(file);
        out.write_all(&HEADER)?;
        let mut frame = Frame::new();
        for object in self.collections.iter().flat_map(Tree::iter) {
            frame.push(EventKind::Added, object);
            if frame.len() > FRAME {
                write_frame(&mut out, std::mem::replace(&mut frame, Frame::new()))?;
            }
        }
        frame.push_end(self.revision);
        write_frame(&mut out, frame)?;
        let file = out.into_inner()?;
        file.sync_all()?;
        Ok(file)
    }
}

fn write_frame(out: &mut impl io::Write, mut frame: Frame) -> io::Result<()> {
    frame.seal();
    out.write_all(frame.bytes()?)
}
