//! Files that appear with the content of a file that is known: copies, compressed copies, and replacements.
//!
//! A copy of a file that is still there is not read. When the original is cut (as `copytruncate` does) or removed, the
//! copy takes its place, so that what had not been read is read from there.
//!
//! *Does not*: tell two logs apart that agree in their first line and in what was read of them. Real lines begin with
//! a time.

use super::{LogFiles, NameOwner, scan::ArrivedFile};
use crate::{
    fingerprint::{ContentMark, ContentRead, MARK_BYTES, mark_length},
    generation::Generation,
    log_stream::LogLayout,
    position::StreamId,
};

/// What a file with the same first line is to a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    /// It has all its content, and the generation needs a file.
    Replacement,
    /// It has the beginning of its content, and the generation's own file is there.
    Copy,
    Other,
}

impl LogFiles {
    /// Finds the generation that a new file is a copy of.
    pub(super) fn attach_copy(
        &mut self,
        arrived: &ArrivedFile,
        is_compressed: bool,
        first_line: u64,
        content: &mut dyn ContentRead,
    ) -> bool {
        let alike: Vec<(StreamId, u64)> = self
            .streams
            .values()
            .filter(|stream| stream.layout == LogLayout::Plain)
            .flat_map(|stream| stream.generations.iter().map(|generation| (stream.id, generation)))
            .filter(|(_, generation)| generation.first_line == Some(first_line))
            .map(|(id, generation)| (id, generation.number))
            .collect();
        for (id, number) in alike {
            // A cut makes a generation that needs a file.
            self.look_for_truncation(id);
            let generation = self.streams.get_mut(&id).and_then(|stream| stream.generation_mut(number));
            let Some(generation) = generation else { continue };
            match compare(generation, arrived, is_compressed, content).unwrap_or(Likeness::Other) {
                Likeness::Replacement => {
                    self.attach_file(id, number, arrived, is_compressed, Some(first_line));
                    return true;
                }
                Likeness::Copy => {
                    self.record_name(arrived, NameOwner::Copy(id, number));
                    return true;
                }
                Likeness::Other => {}
            }
        }
        false
    }

    /// The file of a generation was cut or has lost its name: copies of it are looked at again.
    pub(super) fn recheck_copies(&mut self, id: StreamId) {
        for (directory, names) in &mut self.names {
            let before = names.len();
            names.retain(|_, record| !matches!(record.owner, NameOwner::Copy(original, _) if original == id));
            if names.len() != before {
                self.changes.directories.insert(directory.clone());
            }
        }
    }
}

fn compare(
    generation: &mut Generation,
    arrived: &ArrivedFile,
    is_compressed: bool,
    content: &mut dyn ContentRead,
) -> std::io::Result<Likeness> {
    let original = generation.plain.as_ref().and_then(|slot| slot.handle.clone());
    let has_name = generation.has_name();
    let (Some(original), true) = (&original, !generation.awaits_scan) else {
        // Its content is gone, or only what was read of it can be compared.
        let is_same = generation.has_content_of(content, generation.first_line)?;
        let needs_file = !generation.has_name();
        return Ok(if is_same && needs_file { Likeness::Replacement } else { Likeness::Other });
    };
    generation.size = original.status()?.size;
    let agrees_at = |offset: u64, content: &mut dyn ContentRead| -> std::io::Result<bool> {
        let mut tail = [0; MARK_BYTES];
        let Some(tail) = tail.get_mut(..mark_length(offset)) else { return Ok(false) };
        let read = original.read_at(tail, offset - tail.len() as u64)?;
        Ok(read == tail.len() && ContentMark::from_bytes_before(offset, tail).matches(content)?)
    };
    if has_name {
        // A copy may still be growing; one that has outgrown its original is a log of its own.
        let is_copy = if is_compressed {
            true
        } else {
            arrived.status.size <= generation.size && agrees_at(arrived.status.size, content)?
        };
        return Ok(if is_copy { Likeness::Copy } else { Likeness::Other });
    }
    // It has to hold everything, since what had not been read will be read from it.
    Ok(if agrees_at(generation.size, content)? { Likeness::Replacement } else { Likeness::Other })
}
