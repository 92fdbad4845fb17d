//! Lines of a log file, as container runtimes write them: `2026-01-02T03:04:05.000000006Z stdout F what was said`.
//!
//! The time has always nine digits after the point, so that times compare as their bytes do. `P` instead of `F` says that the line goes on
//! in the next entry of the stream.

use std::fmt::Write as _;

use jiff::Timestamp;

/// As long as one entry gets: longer lines are cut, as containerd does it.
const LONGEST: usize = 16 << 10;

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// As log files and Kubernetes' API call it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Makes entries of what a stream brings. What has no end yet waits.
#[derive(Debug)]
pub(crate) struct Splitter {
    stream: Stream,
    rest: Vec<u8>,
}

impl Splitter {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Appends entries of what has come to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        let now = format_time(now);
        while !bytes.is_empty() {
            let room = LONGEST - self.rest.len();
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

    /// The stream has ended: what waits is the last line.
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
        // What waited may have been long; the next line may not be.
        self.rest.shrink_to(0);
    }
}

/// With nine digits after the point, always.
pub(crate) fn format_time(time: Timestamp) -> String {
    let mut text = String::with_capacity(30);
    // Writing to a string does not fail.
    let _ = write!(text, "{time:.9}");
    text
}

/// One entry, without the end of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) time: &'a [u8],
    /// Whether the line ends here.
    pub(crate) full: bool,
    pub(crate) text: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let (time, _stream, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        Some(Self { time, full: tag == b"F", text })
    }
}
