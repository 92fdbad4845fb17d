//! Output that is written while it is generated.
//!
//! The text of a batch may be a hundred times as long as the batch, so that it is never held as a whole.

use std::{
    fmt::{Arguments, Write},
    io,
};

use kubewake_otlp::{Allowance, work_bytes};

use super::{DebugOutput, local_error};
use crate::core::{SendError, WorkMemory};

/// Size of a block that is written at once.
const BLOCK_BYTES: usize = 64 << 10;

/// Lines of text, written in blocks. After a failure nothing more is written.
pub(super) struct TextLines<'o> {
    text: String,
    output: &'o dyn DebugOutput,
    memory: WorkMemory<'o>,
    /// Memory reserved for reading one message. It is reused for the next ones.
    work: usize,
    failure: Option<SendError>,
}

impl<'o> TextLines<'o> {
    pub(super) fn new(output: &'o dyn DebugOutput, memory: WorkMemory<'o>) -> Self {
        Self { text: String::new(), output, memory, work: 0, failure: None }
    }

    pub(super) fn add(&mut self, line: Arguments<'_>) {
        if self.failure.is_some() {
            return;
        }
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
        if self.text.len() >= BLOCK_BYTES {
            self.write_block();
        }
    }

    /// Reserves memory to read a message, whose parts are joined before they are written.
    pub(super) fn reserve_for_message(&mut self, message: &[u8]) -> bool {
        let needed = work_bytes(message);
        if self.failure.is_none() && needed > self.work {
            if self.memory.reserve(needed - self.work) {
                self.work = needed
            } else {
                self.failure = Some(self.memory.send_error())
            }
        }
        self.failure.is_none()
    }

    fn write_block(&mut self) {
        let shown = self.output.write_text(&self.text);
        self.text.clear();
        self.failure = shown.err().map(|error| console_error(&error));
    }

    pub(super) fn finish(mut self) -> Result<(), SendError> {
        if self.failure.is_none() && !self.text.is_empty() {
            self.write_block();
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// JSON objects, written in blocks of whole lines.
pub(super) struct JsonLines<'o> {
    pub(super) bytes: Vec<u8>,
    output: &'o dyn DebugOutput,
    memory: WorkMemory<'o>,
    work: usize,
}

impl<'o> JsonLines<'o> {
    pub(super) fn new(output: &'o dyn DebugOutput, memory: WorkMemory<'o>) -> Self {
        Self { bytes: Vec::new(), output, memory, work: 0 }
    }

    /// Reserves memory to write a message behind `head`.
    pub(super) fn reserve_for_message(&mut self, message: &[u8], head: &[u8]) -> Result<(), SendError> {
        let needed = work_bytes(message).max(head.len());
        if needed > self.work {
            if !self.memory.reserve(needed - self.work) {
                return Err(self.memory.send_error());
            }
            self.work = needed;
        }
        Ok(())
    }

    /// Writes the block if it is large enough.
    pub(super) fn end_line(&mut self) -> Result<(), SendError> {
        self.bytes.push(b'\n');
        if self.bytes.len() >= BLOCK_BYTES { self.write_block() } else { Ok(()) }
    }

    fn write_block(&mut self) -> Result<(), SendError> {
        let shown = self.output.write_records(&self.bytes);
        self.bytes.clear();
        shown.map_err(|error| console_error(&error))
    }

    pub(super) fn finish(mut self) -> Result<(), SendError> {
        if self.bytes.is_empty() { Ok(()) } else { self.write_block() }
    }
}

fn console_error(error: &io::Error) -> SendError {
    local_error(format!("failed to write to the console: {error}"))
}
