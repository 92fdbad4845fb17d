//! A text that grows line by line.

use std::fmt::{Arguments, Write};

/// Lines of text.
#[derive(Default)]
pub(super) struct Lines(String);

impl Lines {
    /// Adds a line.
    pub(super) fn add(&mut self, line: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
