//! A text that is shown while it grows.
//!
//! The text of a batch may be a hundred times as long as the batch, so that it is never there as a whole.

use std::{
    fmt::{Arguments, Write},
    io,
};

use kubewake_otlp::{Allowance, work_bytes};

use super::{Output, local};
use crate::core::{SendError, WorkMemory};

/// So much is gathered before it is shown.
const BLOCK_BYTES: usize = 64 << 10;

/// Lines of text, shown in blocks. After a failure nothing more is shown.
pub(super) struct Lines<'o> {
    text: String,
    output: &'o dyn Output,
    memory: WorkMemory<'o>,
    /// What was reserved to read one message. It serves the next ones, too.
    work: usize,
    failure: Option<SendError>,
}

impl<'o> Lines<'o> {
    pub(super) fn new(output: &'o dyn Output, memory: WorkMemory<'o>) -> Self {
        Self { text: String::new(), output, memory, work: 0, failure: None }
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: Arguments<'_>) {
        if self.failure.is_some() {
            return;
        }
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
        if self.text.len() >= BLOCK_BYTES {
            self.show();
        }
    }

    /// Whether there is memory to read a message: what is in a large one is put together before it is written.
    pub(super) fn may_read(&mut self, message: &[u8]) -> bool {
        let needed = work_bytes(message);
        if self.failure.is_none() && needed > self.work {
            match self.memory.reserve(needed - self.work) {
                true => self.work = needed,
                false => self.failure = Some(self.memory.send_error()),
            }
        }
        self.failure.is_none()
    }

    fn show(&mut self) {
        let shown = self.output.block(&self.text);
        self.text.clear();
        self.failure = shown.err().map(|error| failed(&error));
    }

    /// Shows the rest.
    pub(super) fn finish(mut self) -> Result<(), SendError> {
        if self.failure.is_none() && !self.text.is_empty() {
            self.show();
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Objects for programs, shown in blocks of whole lines.
pub(super) struct Records<'o> {
    pub(super) bytes: Vec<u8>,
    output: &'o dyn Output,
    memory: WorkMemory<'o>,
    work: usize,
}

impl<'o> Records<'o> {
    pub(super) fn new(output: &'o dyn Output, memory: WorkMemory<'o>) -> Self {
        Self { bytes: Vec::new(), output, memory, work: 0 }
    }

    /// Asks for the memory that it takes to write a message, `head` in front of it.
    pub(super) fn ask_for(&mut self, message: &[u8], head: &[u8]) -> Result<(), SendError> {
        let needed = work_bytes(message).max(head.len());
        if needed > self.work {
            if !self.memory.reserve(needed - self.work) {
                return Err(self.memory.send_error());
            }
            self.work = needed;
        }
        Ok(())
    }

    /// Shows what is there, if that is much.
    pub(super) fn end_line(&mut self) -> Result<(), SendError> {
        self.bytes.push(b'\n');
        if self.bytes.len() >= BLOCK_BYTES { self.show() } else { Ok(()) }
    }

    fn show(&mut self) -> Result<(), SendError> {
        let shown = self.output.records(&self.bytes);
        self.bytes.clear();
        shown.map_err(|error| failed(&error))
    }

    /// Shows the rest.
    pub(super) fn finish(mut self) -> Result<(), SendError> {
        if self.bytes.is_empty() { Ok(()) } else { self.show() }
    }
}

fn failed(error: &io::Error) -> SendError {
    local(format!("cannot write to the console: {error}"))
}
