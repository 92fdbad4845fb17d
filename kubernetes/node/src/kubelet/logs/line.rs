//! Log entries in the format of container runtimes: `2026-01-02T03:04:05.000000006Z stdout F text`.
//!
//! The time always has nine digits after the point, so that times compare like their bytes. `P` instead of `F`
//! means that the line continues in the next entry of the stream.

use std::fmt::Write as _;

use jiff::Timestamp;

/// The longest entry: longer lines are split, as in containerd.
const MAX_ENTRY_BYTES: usize = 16 << 10;

/// The stream of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

impl OutputStream {
    /// The name in log files and in the Kubernetes API.
    fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Converts the output of a stream to entries. Incomplete lines are buffered.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    stream: OutputStream,
    rest: Vec<u8>,
}

impl LineSplitter {
    pub(crate) fn new(stream: OutputStream) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Appends the entries of new output to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        let now = format_time(now);
        while !bytes.is_empty() {
            let room = MAX_ENTRY_BYTES - self.rest.len();
            let (within, beyond) = bytes.split_at(room.min(bytes.len()));
            match within.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let (line, after) = bytes.split_at(end);
                    self.entry(line, b'F', &now, out);
                    bytes = after.get(1..).unwrap_or_default();
                }
                None if within.len() == room => {
                    self.entry(within, b'P', &now, out);
                    bytes = beyond;
                }
                None => {
                    self.rest.extend_from_slice(within);
                    bytes = beyond;
                }
            }
        }
    }

    /// Handles the end of the stream: the buffered rest is the last line.
    pub(crate) fn finish(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        if !self.rest.is_empty() {
            self.entry(&[], b'F', &format_time(now), out);
        }
    }

    fn entry(&mut self, more: &[u8], tag: u8, now: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(now.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.stream.as_str().as_bytes());
        out.extend_from_slice(&[b' ', tag, b' ']);
        out.append(&mut self.rest);
        out.extend_from_slice(more);
        out.push(b'\n');
        // The buffer may have grown for a long line; release it.
        self.rest.shrink_to(0);
    }
}

/// Always nine digits after the point.
pub(crate) fn format_time(time: Timestamp) -> String {
    let mut text = String::with_capacity(30);
    // Writing to a String cannot fail.
    let _ = write!(text, "{time:.9}");
    text
}

/// An entry without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry<'a> {
    pub(crate) time: &'a [u8],
    /// Whether the line ends with this entry.
    pub(crate) full: bool,
    pub(crate) text: &'a [u8],
}

impl<'a> LogEntry<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let time = parts.next()?;
        let _stream = parts.next()?;
        let tag = parts.next()?;
        let text = parts.next()?;
        Some(Self { time, full: tag == b"F", text })
    }
}
