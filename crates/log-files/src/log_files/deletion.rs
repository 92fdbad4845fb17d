//! `delete_after_read`: deletes files that all outputs have committed.
//!
//! *Guarantees*: what is deleted is the file that was read, to the end that it has now, and nothing outside of the
//! configured directories.
//!
//! *Does not*: notice a write between the look at the size and the deletion. Whoever lets files be deleted has them
//! complete before they match.

use std::{io, path::Path};

use rustix::fs::AtFlags;

use super::LogFiles;
use crate::{
    events::{FileProblem, ProblemKind},
    file_opener::OpenFailure,
    generation::{FileName, FileSlot},
    log_stream::LogLayout,
    position::StreamId,
};

impl LogFiles {
    pub(super) fn delete_file_that_was_read(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id).filter(|stream| stream.layout == LogLayout::Plain) else { return };
        let Some(last) = stream.generations.back() else { return };
        let is_read = stream.first_needed() >= last.last_position();
        let Some(slot) = last.slots().find(|slot| slot.name.is_some()).filter(|_| is_read) else { return };
        let is_whole = slot.handle.as_ref().is_some_and(|file| {
            last.gzip.is_some() && last.was_end_read || file.status().is_ok_and(|status| status.size == last.size)
        });
        let Some(name) = slot.name.clone().filter(|_| is_whole) else { return };
        match self.delete(slot, &name) {
            // The directory reports it.
            Ok(()) | Err(OpenFailure::Absent) => {}
            Err(failure) => {
                let cause = match failure {
                    OpenFailure::Io(error) => error,
                    _ => io::Error::from(io::ErrorKind::PermissionDenied),
                };
                let message = format!("failed to delete file that was read: {cause}");
                self.report(FileProblem::new(ProblemKind::NotDeleted, &name.path, message));
            }
        }
    }

    fn delete(&self, slot: &FileSlot, name: &FileName) -> Result<(), OpenFailure> {
        if name.open(&self.opener)?.key() != slot.key {
            return Err(OpenFailure::Absent);
        }
        let relative = name.path.strip_prefix(&name.base).unwrap_or(&name.path);
        let (Some(parent), Some(file_name)) = (relative.parent(), relative.file_name()) else {
            return Err(OpenFailure::Absent);
        };
        let directory = self.opener.open_directory(&name.base, parent)?;
        Ok(rustix::fs::unlinkat(&directory, Path::new(file_name), AtFlags::empty())?)
    }
}
