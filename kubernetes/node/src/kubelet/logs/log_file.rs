//! One file of a log, compressed or not.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    os::unix::fs::FileExt,
    path::Path,
};

use flate2::bufread::GzDecoder;

use super::rotation::RotatedLog;

pub(super) const READ_BLOCK_BYTES: usize = 64 << 10;

/// A file that is open for reading. It can be read to its end after it was renamed, compressed or removed.
#[derive(Debug)]
pub(super) enum LogFile {
    Plain(File),
    Compressed(Box<GzDecoder<BufReader<File>>>),
}

impl LogFile {
    pub(super) fn open(rotated: &RotatedLog) -> io::Result<Self> {
        let file = File::open(rotated.current_path())?;
        Ok(if rotated.is_compressed { Self::from_compressed(file) } else { Self::Plain(file) })
    }

    pub(super) fn open_plain(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self::Plain)
    }

    fn from_compressed(file: File) -> Self {
        Self::Compressed(Box::new(GzDecoder::new(BufReader::new(file))))
    }

    /// Moves to an offset of the content, from the start.
    pub(super) fn skip(&mut self, offset: u64) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.seek(io::SeekFrom::Start(offset)).map(drop),
            Self::Compressed(content) => io::copy(&mut content.take(offset), &mut io::sink()).map(drop),
        }
    }

    /// The offset of the last `wanted` lines before `end`, and the number of missing lines. Without an `end`, the
    /// file is read to its own.
    pub(super) fn find_tail(self, end: Option<u64>, wanted: u64) -> io::Result<(u64, u64)> {
        match self {
            Self::Plain(file) => {
                let end = end.map_or_else(|| file.metadata().map(|found| found.len()), Ok)?;
                find_tail_backwards(&file, end, wanted)
            }
            Self::Compressed(content) => find_tail_of_compressed(*content, wanted),
        }
    }
}

impl Read for LogFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(into),
            Self::Compressed(content) => content.read(into),
        }
    }
}

fn find_tail_backwards(file: &File, end: u64, wanted: u64) -> io::Result<(u64, u64)> {
    let mut block = vec![0; READ_BLOCK_BYTES];
    let mut at = end;
    let mut seen = 0;
    while at > 0 {
        let length = at.min(READ_BLOCK_BYTES as u64);
        at -= length;
        let part = block.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
        file.read_exact_at(part, at)?;
        for (index, byte) in part.iter().enumerate().rev() {
            // The end of the last line does not end a line before it.
            if *byte != b'\n' {
                continue;
            }
            if seen == wanted {
                return Ok((at + index as u64 + 1, 0));
            }
            seen += 1;
        }
    }
    Ok((0, wanted - seen))
}

/// Reads the content twice: it cannot be read backwards, and the ends of all lines may be too many to remember.
fn find_tail_of_compressed(mut content: GzDecoder<BufReader<File>>, wanted: u64) -> io::Result<(u64, u64)> {
    let mut lines = 0;
    for_each_block(&mut content, |block| {
        lines += count_lines(block);
        true
    })?;
    if lines <= wanted {
        return Ok((0, wanted - lines));
    }
    let mut file = content.into_inner();
    file.rewind()?;
    let mut skipped = lines - wanted;
    let mut offset = 0;
    for_each_block(&mut GzDecoder::new(file), |block| {
        for (index, _) in block.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            skipped -= 1;
            if skipped == 0 {
                offset += index as u64 + 1;
                return false;
            }
        }
        offset += block.len() as u64;
        true
    })?;
    Ok((offset, 0))
}

/// Reads until the end, or until the function returns false.
fn for_each_block(content: &mut impl Read, mut read: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let mut block = vec![0; READ_BLOCK_BYTES];
    loop {
        let length = content.read(&mut block)?;
        if length == 0 || !read(block.get(..length).unwrap_or_default()) {
            return Ok(());
        }
    }
}

fn count_lines(block: &[u8]) -> u64 {
    block.iter().filter(|byte| **byte == b'\n').count() as u64
}
