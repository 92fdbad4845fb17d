//! Lines of any file, as records.
//!
//! *Guarantees*: every byte of a log is part of exactly one record, separates records, or is counted. Where a log is
//! cut into chunks makes no difference, unless a pattern matches texts of more than 4 KiB, or several line feeds at
//! once. No byte is kept: what is not consumed stays with the caller.
//!
//! *Assumes*: chunks arrive in order, each from where the one before was consumed to, and hold
//! [`PlainLogDecoder::max_line_bytes`] where a caller can read as many.
//!
//! *Does not*: wait. The caller knows for how long an unfinished record has not grown, and flushes it.

mod line_framing;
#[cfg(test)]
mod tests;

pub use line_framing::{LineFraming, LinePattern};

use crate::encoding::TextEncoding;
use crate::limits::{BlankTrimming, DecodeCounts, OversizeBehavior};
use crate::record::{BodyKind, LinePosition, LineRecord, RecordSink};

/// How a file is read.
#[derive(Clone, Debug)]
pub struct PlainSettings {
    pub encoding: TextEncoding,
    pub framing: LineFraming,
    /// Bytes of a record in the file, at most. A longer record is cut behind them, even within a character.
    pub max_record_bytes: usize,
    pub oversize: OversizeBehavior,
    /// Blanks that are removed from the ends of a record. A record without anything else is none.
    pub trimming: BlankTrimming,
}

impl Default for PlainSettings {
    fn default() -> Self {
        Self {
            encoding: TextEncoding::Utf8,
            framing: LineFraming::LineFeed,
            max_record_bytes: 1024 * 1024,
            oversize: OversizeBehavior::Split,
            trimming: BlankTrimming { removes_leading: true, removes_trailing: true },
        }
    }
}

/// Reads one log of lines.
#[derive(Debug)]
pub struct PlainLogDecoder {
    settings: PlainSettings,
    /// Whether the rest of a record that was cut is dropped.
    is_dropping: bool,
    position: LinePosition,
    number: u64,
    counts: DecodeCounts,
}

impl PlainLogDecoder {
    pub fn new(settings: PlainSettings) -> Self {
        let position = LinePosition::default();
        Self { settings, is_dropping: false, position, number: 0, counts: DecodeCounts::default() }
    }

    /// The longest chunk that may be needed before a record can be consumed.
    pub fn max_line_bytes(&self) -> usize {
        self.max_record_bytes().saturating_add(self.settings.framing.margin(self.settings.encoding))
    }

    /// Reads the complete records of a chunk that begins at `start` and was read at `observed`, in nanoseconds since
    /// 1970. Returns the number of bytes consumed. What is left is an unfinished record, or the sink has no more room;
    /// the next chunk begins with it.
    pub fn push<S: RecordSink>(&mut self, chunk: &[u8], start: LinePosition, observed: u64, sink: &mut S) -> usize {
        sink.expect_bytes(chunk.len());
        self.read(chunk, start, observed, false, sink)
    }

    /// Hands on the unfinished record that the caller still has, as its file has not grown for a while or has ended.
    /// Returns the number of bytes consumed, which is less than all only if the sink has no more room.
    pub fn flush<S: RecordSink>(&mut self, rest: &[u8], start: LinePosition, observed: u64, sink: &mut S) -> usize {
        self.read(rest, start, observed, true, sink)
    }

    /// Where a reader has to begin again so that it loses nothing: behind the last record that was consumed.
    pub fn commit_position(&self) -> LinePosition {
        self.position
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> DecodeCounts {
        std::mem::take(&mut self.counts)
    }

    /// Continues the numbers of records behind this one.
    pub fn set_record_number(&mut self, number: u64) {
        self.number = number;
    }

    /// The number of the last record.
    pub fn record_number(&self) -> u64 {
        self.number
    }

    fn max_record_bytes(&self) -> usize {
        // A record of UTF-16 has at least a character.
        let unit = self.settings.encoding.unit_bytes();
        (self.settings.max_record_bytes / unit * unit).max(unit)
    }

    fn read<S: RecordSink>(
        &mut self,
        chunk: &[u8],
        start: LinePosition,
        observed: u64,
        is_end: bool,
        sink: &mut S,
    ) -> usize {
        let mut consumed = 0;
        let mut rest = chunk;
        while sink.has_room() && !rest.is_empty() {
            let at = start.advanced_by(consumed);
            let Some(length) = self.read_next(rest, at, observed, is_end, sink) else { break };
            consumed += length;
            self.position = start.advanced_by(consumed);
            rest = rest.get(length..).unwrap_or_default();
        }
        self.counts.bytes += consumed as u64;
        consumed
    }

    /// Reads a record, or a piece of one that is too long. Returns its length; `None` if more bytes are needed.
    fn read_next<S: RecordSink>(
        &mut self,
        rest: &[u8],
        at: LinePosition,
        observed: u64,
        is_end: bool,
        sink: &mut S,
    ) -> Option<usize> {
        let PlainSettings { encoding, ref framing, oversize, .. } = self.settings;
        let max_record_bytes = self.max_record_bytes();
        if encoding == TextEncoding::Nop {
            let piece = rest.get(..max_record_bytes).unwrap_or(rest);
            self.put(piece, at, observed, sink);
            return Some(piece.len());
        }
        if self.is_dropping {
            return self.drop_rest(rest, is_end);
        }
        let window = rest.get(..self.max_line_bytes()).unwrap_or(rest);
        let is_whole_window = is_end && window.len() == rest.len();
        match framing.find(window, encoding, is_whole_window) {
            Some(frame) if frame.text.len() <= max_record_bytes => {
                self.counts.lines += 1;
                self.put(frame.text, at, observed, sink);
                Some(frame.length)
            }
            None if window.len() < self.max_line_bytes() => None,
            _ => {
                let piece = rest.get(..max_record_bytes)?;
                self.is_dropping = oversize == OversizeBehavior::Truncate;
                self.counts.truncated_records += u64::from(self.is_dropping);
                self.counts.split_records += u64::from(!self.is_dropping);
                self.put(piece, at, observed, sink);
                Some(max_record_bytes)
            }
        }
    }

    /// Drops the rest of a record that was cut, or as much of it as is there.
    fn drop_rest(&mut self, rest: &[u8], is_end: bool) -> Option<usize> {
        let PlainSettings { encoding, ref framing, .. } = self.settings;
        let length = match framing.find_end_of_rest(rest, encoding, is_end) {
            Some(end) => {
                self.is_dropping = false;
                self.counts.lines += 1;
                end
            }
            None if is_end => {
                self.is_dropping = false;
                rest.len()
            }
            // The end may begin in the last bytes.
            None => {
                let unit = encoding.unit_bytes();
                rest.len().checked_sub(framing.margin(encoding)).map(|length| length / unit * unit)?
            }
        };
        self.counts.truncated_bytes += length as u64;
        // A record that begins at once consumes nothing here, and is read in the next step.
        (length > 0 || !self.is_dropping).then_some(length)
    }

    fn put<S: RecordSink>(&mut self, text: &[u8], at: LinePosition, observed: u64, sink: &mut S) {
        let PlainSettings { encoding, trimming, .. } = self.settings;
        let decoded = encoding.decode(text);
        let body_kind = encoding.body_kind();
        let body = if body_kind == BodyKind::Bytes { &*decoded } else { trimming.apply(&decoded).0 };
        if body.is_empty() {
            self.counts.empty_lines += 1;
            return;
        }
        self.number += 1;
        self.counts.records += 1;
        sink.put(&LineRecord {
            start: at,
            number: self.number,
            time: 0,
            observed,
            stream: None,
            tags: &[],
            docker_attributes: &[],
            body,
            body_kind,
        });
    }
}
