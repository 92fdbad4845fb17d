//! Log entries in the format of container runtimes: `2026-01-02T03:04:05.06Z stdout F text`.
//!
//! The rules are containerd's. `P` instead of `F` means that the line continues in the next entry of the stream.
//! A line of more than 16 KiB is cut after each 16 KiB, also in the middle of a character. Output that ends
//! without a line end is a `P` that no `F` follows.

use jiff::Timestamp;

/// The longest text of an entry: `max_container_log_line_size` of containerd.
pub(crate) const MAX_TEXT_BYTES: usize = 16 << 10;

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
    /// The start of a line, at most [`MAX_TEXT_BYTES`].
    rest: Vec<u8>,
}

impl LineSplitter {
    pub(crate) fn new(stream: OutputStream) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Appends the entries of new output to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        let prefix = self.prefix(now);
        while !bytes.is_empty() {
            // A line of just the allowed size is whole, so that the byte after it decides.
            let room = MAX_TEXT_BYTES.saturating_sub(self.rest.len());
            match bytes.iter().take(room + 1).position(|byte| *byte == b'\n') {
                Some(end) => {
                    let (line, after) = bytes.split_at(end);
                    self.entry(line, b'F', &prefix, out);
                    bytes = after.get(1..).unwrap_or_default();
                }
                None => match bytes.split_at_checked(room).filter(|(_, beyond)| !beyond.is_empty()) {
                    Some((within, beyond)) => {
                        self.entry(within, b'P', &prefix, out);
                        bytes = beyond;
                    }
                    None => {
                        self.rest.extend_from_slice(bytes);
                        return;
                    }
                },
            }
        }
    }

    /// Handles the end of the stream: no line end follows the buffered rest.
    pub(crate) fn finish(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        if !self.rest.is_empty() {
            self.entry(&[], b'P', &self.prefix(now), out);
        }
    }

    /// Everything before the tag.
    fn prefix(&self, now: Timestamp) -> String {
        format!("{now} {} ", self.stream.as_str())
    }

    fn entry(&mut self, more: &[u8], tag: u8, prefix: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(&[tag, b' ']);
        out.append(&mut self.rest);
        out.extend_from_slice(more);
        out.push(b'\n');
        // The buffer may have grown for a long line; release it.
        self.rest.shrink_to(0);
    }
}

/// Formats the time of an entry for `kubectl logs --timestamps`: always nine digits after the point.
pub(crate) fn format_fixed_time(time: Timestamp) -> String {
    format!("{time:.9}")
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
        // Only the first of several tags says whether the entry is whole.
        let tag = parts.next()?.split(|byte| *byte == b':').next()?;
        let text = parts.next()?;
        Some(Self { time, full: tag != b"P", text })
    }

    pub(crate) fn timestamp(&self) -> Option<Timestamp> {
        std::str::from_utf8(self.time).ok()?.parse().ok()
    }
}
