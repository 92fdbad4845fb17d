//! The bytes of one generation at a position, from whatever file has them.

use std::{
    io::{self, IoSliceMut},
    sync::Arc,
};

use crate::{
    events::LossCause,
    file_opener::{FileOpener, OpenFailure},
    fingerprint::{ContentMark, MARK_BYTES, mark_length},
    generation::Generation,
    open_file::{GZIP_MAGIC, GzipCursor, GzipProgress, OpenFile, PlainContent},
    reader::LogReader,
    settings::FileCompression,
};

/// What one attempt to read has met.
pub(super) enum ReadStep {
    /// So many bytes, and whether the file ends behind them.
    Bytes(usize, bool),
    /// The content cannot be read at present.
    Wait,
    /// The file was closed, and another one has its name now: its directory has to be listed.
    Renamed,
    /// It takes more than this call to get to the position.
    Skipping,
    /// No file has the content any more.
    Missing,
    /// The file has other content than what was read of it.
    Replaced(Arc<OpenFile>),
    Failed(io::Error),
}

/// Reads at the position of the reader. `compression` says how a file outside of containers' directories may be stored.
pub(super) fn read_generation(
    generation: &mut Generation,
    reader: &mut LogReader,
    buffer: &mut [u8],
    opener: &FileOpener,
    compression: Option<FileCompression>,
) -> ReadStep {
    if generation.awaits_scan {
        return ReadStep::Wait;
    }
    if let Some(slot) = &mut generation.plain {
        match slot.open(opener) {
            Ok(Some(file)) => {
                // It turns out only with the first bytes that an `auto` file is compressed.
                let is_undecided = compression == Some(FileCompression::Auto) && reader.position.offset == 0;
                if !is_undecided || file.read_head(GZIP_MAGIC.len()).is_ok_and(|head| head != GZIP_MAGIC) {
                    return read_plain(generation, reader, buffer, file).unwrap_or_else(ReadStep::Failed);
                }
                generation.gzip = generation.plain.take();
            }
            Ok(None) if slot.name.is_some() => return ReadStep::Renamed,
            Ok(None) if generation.gzip.is_some() => generation.plain = None,
            Ok(None) => {
                generation.plain = None;
                generation.lost.get_or_insert(LossCause::Removed);
                generation.is_complete = true;
                return ReadStep::Missing;
            }
            Err(OpenFailure::Io(error)) => return ReadStep::Failed(error),
            Err(_) => return ReadStep::Wait,
        }
    }
    let Some(slot) = &mut generation.gzip else { return ReadStep::Missing };
    match slot.open(opener) {
        Ok(Some(file)) => read_gzip(generation, reader, buffer, file).unwrap_or_else(ReadStep::Failed),
        Ok(None) if slot.name.is_some() => ReadStep::Renamed,
        Ok(None) => {
            generation.gzip = None;
            generation.lost.get_or_insert(LossCause::Removed);
            generation.is_complete = true;
            ReadStep::Missing
        }
        Err(OpenFailure::Io(error)) => ReadStep::Failed(error),
        Err(_) => ReadStep::Wait,
    }
}

/// Reads together with what is before the position, which shows whether the file still has the content that was read.
fn read_plain(
    generation: &mut Generation,
    reader: &mut LogReader,
    buffer: &mut [u8],
    file: Arc<OpenFile>,
) -> io::Result<ReadStep> {
    let offset = reader.position.offset;
    if generation.awaits_growth {
        if file.status()?.size <= generation.size {
            return Ok(ReadStep::Wait);
        }
        generation.awaits_growth = false;
    }
    // Until something was consumed, only the beginning shows whether the file was cut.
    if generation.mark.is_none() && !generation.head.is_of(&file)? {
        return Ok(ReadStep::Replaced(file));
    }
    let length = mark_length(offset);
    if reader.tail.len() != length {
        let mut tail = vec![0; length];
        if file.read_at(&mut tail, offset - length as u64)? < length {
            return Ok(ReadStep::Replaced(file));
        }
        let found = ContentMark::from_bytes_before(offset, &tail);
        if generation.mark.is_some_and(|mark| mark.offset == offset && mark != found) {
            return Ok(ReadStep::Replaced(file));
        }
        reader.tail = tail;
    }
    let mut before = [0; MARK_BYTES];
    let before = before.get_mut(..length).unwrap_or_default();
    let wanted = buffer.len();
    let read =
        file.read_vectored_at(&mut [IoSliceMut::new(before), IoSliceMut::new(buffer)], offset - length as u64)?;
    if read < length || *before != *reader.tail {
        return Ok(ReadStep::Replaced(file));
    }
    // Another reader is ahead: what it has read has to be there still.
    if let Some(mark) = generation.mark.filter(|mark| mark.offset > offset)
        && !mark.matches(&mut PlainContent(file.clone()))?
    {
        return Ok(ReadStep::Replaced(file));
    }
    let bytes = read - length;
    Ok(ReadStep::Bytes(bytes, bytes < wanted))
}

fn read_gzip(
    generation: &mut Generation,
    reader: &mut LogReader,
    buffer: &mut [u8],
    file: Arc<OpenFile>,
) -> io::Result<ReadStep> {
    let is_current = reader.gzip.as_ref().is_some_and(|(number, _)| *number == generation.number);
    if !is_current {
        reader.gzip = Some((generation.number, GzipCursor::new(file)));
    }
    let Some((_, cursor)) = &mut reader.gzip else { return Ok(ReadStep::Wait) };
    if reader.position.offset == u64::MAX {
        return Ok(ReadStep::Bytes(0, true));
    }
    match cursor.read_step(buffer, reader.position.offset) {
        Ok(GzipProgress::Skipping) => Ok(ReadStep::Skipping),
        Ok(GzipProgress::Read(bytes)) => Ok(ReadStep::Bytes(bytes, bytes < buffer.len())),
        Err(error) => {
            reader.gzip = None;
            Err(error)
        }
    }
}
