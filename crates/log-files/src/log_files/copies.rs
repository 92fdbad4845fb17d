//! Files that appear with the content of a file that is known: copies, compressed copies, and replacements.
//!
//! A copy of a file that is still there is not read. When the original is cut (as `copytruncate` does) or removed, the
//! copy takes its place, so that what had not been read is read from there.
//!
//! *Does not*: tell two logs apart that agree in their first line and in what was read of them. Real lines begin with
//! a time.

use std::time::Instant;

use super::{LogFiles, NameOwner, care, scan::ArrivedFile};
use crate::{
    file_content::FileContent,
    file_opener::FileOpener,
    fingerprint::{ContentMark, MARK_BYTES, mark_length},
    generation::Generation,
    log_stream::{LogLayout, LogStream},
    open_file::OpenFile,
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
    pub(super) fn attach_copy(&mut self, arrived: &ArrivedFile, content: &mut FileContent) -> bool {
        // A file may have been cut, written and renamed since it was looked at.
        let is_nameless = |stream: &&LogStream| stream.generations.back().is_some_and(|last| !last.has_name());
        let nameless: Vec<StreamId> = self.streams.values().filter(is_nameless).map(|stream| stream.id).collect();
        for id in nameless {
            self.look_for_truncation(id);
            let last = self.streams.get_mut(&id).and_then(|stream| stream.generations.back_mut());
            if let Some(last) = last {
                care::refresh(last, &self.opener, self.settings.fingerprint_size);
            }
        }
        let alike: Vec<(StreamId, u64)> = self
            .streams
            .values()
            .filter(|stream| stream.layout == LogLayout::Plain)
            .flat_map(|stream| stream.generations.iter().map(|generation| (stream.id, generation)))
            .filter(|(_, generation)| generation.has_beginning_of(content).unwrap_or(false))
            .map(|(id, generation)| (id, generation.number))
            .collect();
        for (id, number) in alike {
            // A cut makes a generation that needs a file.
            self.look_for_truncation(id);
            let generation = self.streams.get_mut(&id).and_then(|stream| stream.generation_mut(number));
            let Some(generation) = generation else { continue };
            let was_copy = self.copies.contains(&(arrived.file.key(), id));
            let since = if was_copy { None } else { Some(self.scan_began) };
            match compare(generation, &self.opener, arrived, content, since).unwrap_or(Likeness::Other) {
                Likeness::Replacement => {
                    self.copies.remove(&(arrived.file.key(), id));
                    self.attach_file(id, number, arrived, content);
                    return true;
                }
                Likeness::Copy => {
                    self.copies.insert((arrived.file.key(), id));
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
        if !self.copies.iter().any(|(_, original)| *original == id) {
            return;
        }
        for (directory, names) in &mut self.names {
            let before = names.len();
            names.retain(|_, record| !matches!(record.owner, NameOwner::Copy(original, _) if original == id));
            if names.len() != before {
                self.changes.directories.insert(directory.clone());
            }
        }
    }
}

/// Compares a file with a generation, whose own file may have lost its name no sooner than given.
fn compare(
    generation: &mut Generation,
    opener: &FileOpener,
    arrived: &ArrivedFile,
    content: &mut FileContent,
    nameless_since: Option<Instant>,
) -> std::io::Result<Likeness> {
    let original = generation.plain.as_mut().and_then(|slot| slot.open(opener).ok().flatten());
    let has_name = generation.has_name();
    let Some(original) = original else {
        // Its content is gone, or only what was read of it can be compared.
        let is_replacement = !has_name && generation.has_content_of(content)?;
        return Ok(if is_replacement { Likeness::Replacement } else { Likeness::Other });
    };
    generation.size = original.status()?.size;
    if has_name {
        // A copy may still be growing; one that has outgrown its original is a log of its own.
        let size = arrived.status.size;
        let is_copy = content.is_compressed || (size <= generation.size && agrees_before(&original, size, content)?);
        return Ok(if is_copy { Likeness::Copy } else { Likeness::Other });
    }
    // A file that appears later than the original has gone is a new one, however alike it is.
    let lost_name_at = generation.plain.as_ref().and_then(|slot| slot.nameless_since);
    if nameless_since > lost_name_at {
        return Ok(Likeness::Other);
    }
    // It has to hold everything, since what had not been read will be read from it.
    let is_whole = agrees_before(&original, generation.size, content)?;
    Ok(if is_whole { Likeness::Replacement } else { Likeness::Other })
}

/// Whether the bytes before an offset are the same in both.
fn agrees_before(original: &OpenFile, offset: u64, content: &mut FileContent) -> std::io::Result<bool> {
    let mut tail = [0; MARK_BYTES];
    let Some(tail) = tail.get_mut(..mark_length(offset)) else { return Ok(false) };
    let read = original.read_at(tail, offset - tail.len() as u64)?;
    Ok(read == tail.len() && content.matches(ContentMark::from_bytes_before(offset, tail))?)
}
