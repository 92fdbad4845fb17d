//! `header`: attributes from the first lines of a file, for all of its records.

use std::{fs::File, io::Read, path::Path};

use kubewake_config::file_log::FileHeader;
use kubewake_log_files::LogPosition;
use kubewake_log_lines::LineRecord;
use kubewake_log_operators::{HeaderReader, LogMap};

/// How far a header is looked for at the start of a file that is not read from there.
const MAX_HEADER_BYTES: u64 = 64 << 10;

/// Follows the header of a log, whose next generation has one of its own.
pub(super) struct HeaderTracker {
    settings: FileHeader,
    reader: HeaderReader,
    generation: u64,
}

impl HeaderTracker {
    /// For a reader that begins at `start`. What is in front of it is read from the file.
    pub(super) fn new(settings: &FileHeader, path: &Path, start: LogPosition) -> Self {
        let mut reader = HeaderReader::new(settings);
        if start.offset > 0 {
            let mut text = Vec::new();
            // Without the file its records have no attributes of the header.
            let read =
                File::open(path).and_then(|file| file.take(start.offset.min(MAX_HEADER_BYTES)).read_to_end(&mut text));
            if read.is_ok() {
                let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
                let _ = lines.take_while(|line| reader.take(line)).count();
            }
        }
        Self { settings: settings.clone(), reader, generation: start.generation }
    }

    /// Whether a record is part of the header, and so is none.
    pub(super) fn take(&mut self, record: &LineRecord<'_>) -> bool {
        if record.start.generation != self.generation {
            self.generation = record.start.generation;
            self.reader = HeaderReader::new(&self.settings);
        }
        self.reader.take(record.body)
    }

    pub(super) fn attributes(&self) -> &LogMap {
        self.reader.attributes()
    }
}
