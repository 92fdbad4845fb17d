//! Bounds of lines, records and requests, and what was counted where a bound or a format did not hold.

/// What becomes of the part of a line that is beyond its longest allowed size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OversizeBehavior {
    /// It becomes further records.
    #[default]
    Split,
    /// It is dropped, and counted.
    Truncate,
}

/// Which blanks (blank, tab, carriage return, line feed) are removed from a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlankTrimming {
    /// Those at its beginning.
    pub removes_leading: bool,
    /// Those at its end.
    pub removes_trailing: bool,
}

impl BlankTrimming {
    /// Removes the blanks. Returns the rest with the number of bytes in front of it.
    pub(crate) fn apply<'a>(&self, text: &'a [u8]) -> (&'a [u8], usize) {
        let is_blank = |byte: &u8| matches!(*byte, b' ' | b'\t' | b'\r' | b'\n');
        let mut rest = text;
        if self.removes_leading {
            let blanks = rest.iter().take_while(|byte| is_blank(byte)).count();
            rest = rest.get(blanks..).unwrap_or_default();
        }
        let removed = text.len() - rest.len();
        if self.removes_trailing {
            let blanks = rest.iter().rev().take_while(|byte| is_blank(byte)).count();
            rest = rest.get(..rest.len() - blanks).unwrap_or_default();
        }
        (rest, removed)
    }
}

/// Bounds of a request. A request ends with the record that reaches one of them, so that it is larger than allowed by
/// less than one record.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Bytes of its records on the wire.
    pub max_bytes: usize,
    /// Its records.
    pub max_records: usize,
}

/// What a decoder counted since it began or since the counts were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeCounts {
    /// Bytes of the log that were consumed, line ends included.
    pub bytes: u64,
    /// Lines that ended.
    pub lines: u64,
    /// Records that were handed on.
    pub records: u64,
    /// Lines of a container that are not of a runtime's format. They were handed on as they are.
    pub unparsed_lines: u64,
    /// Lines without content, which are no records.
    pub empty_lines: u64,
    /// Times that a record reached its largest size and was split.
    pub split_records: u64,
    /// Records that reached their largest size and were cut.
    pub truncated_records: u64,
    /// Bytes of bodies that were dropped behind a cut.
    pub truncated_bytes: u64,
    /// Records whose end never came, and that were handed on without it.
    pub unfinished_records: u64,
}
