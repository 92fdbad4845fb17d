//! The decoder of a log, whatever its format is, and what it keeps at the end of a file.
//!
//! *Guarantees*: a line that the kubelet's rotation has cut in two is one line. [`LineDecoder::commit_position`] never
//! passes a byte of a record that was not handed on.

use kubewake_log_files::LogPosition;
use kubewake_log_lines::{
    ContainerLogDecoder, ContainerSettings, LinePosition, PlainLogDecoder, PlainSettings, RecordSink,
};

/// The format of logs, and the settings of their decoders.
#[derive(Clone, Debug)]
pub(super) enum LineFormat {
    Container(ContainerSettings),
    Plain(PlainSettings),
}

#[derive(Debug)]
enum FormatDecoder {
    Container(Box<ContainerLogDecoder>),
    Plain(PlainLogDecoder),
}

/// Reads the records of one log.
#[derive(Debug)]
pub(super) struct LineDecoder {
    decoder: FormatDecoder,
    /// The beginning of a line that goes on in the next generation, and where it begins.
    carry: Vec<u8>,
    carry_start: LogPosition,
    /// Behind the last byte that was consumed.
    position: LogPosition,
}

impl LineDecoder {
    pub(super) fn new(format: &LineFormat, position: LogPosition) -> Self {
        let decoder = match format {
            LineFormat::Container(settings) => FormatDecoder::Container(Box::new(ContainerLogDecoder::new(*settings))),
            LineFormat::Plain(settings) => FormatDecoder::Plain(PlainLogDecoder::new(settings.clone())),
        };
        Self { decoder, carry: Vec::new(), carry_start: position, position }
    }

    /// The longest chunk that a record may need.
    pub(super) fn max_line_bytes(&self) -> usize {
        match &self.decoder {
            FormatDecoder::Container(decoder) => decoder.max_line_bytes(),
            FormatDecoder::Plain(decoder) => decoder.max_line_bytes(),
        }
    }

    /// Reads the records of a chunk as far as the builder has room. Returns the number of bytes consumed.
    pub(super) fn push<S: RecordSink>(
        &mut self,
        chunk: &[u8],
        start: LogPosition,
        observed: u64,
        builder: &mut S,
    ) -> usize {
        let mut consumed = 0;
        if !self.carry.is_empty() {
            let end = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |end| end + 1);
            let carried = self.carry.len();
            self.carry.extend_from_slice(chunk.get(..end).unwrap_or_default());
            let mut carry = std::mem::take(&mut self.carry);
            let used = self.push_lines(&carry, self.carry_start, observed, builder);
            if used < carry.len() {
                // No room, or still no end of the line.
                if used <= carried && end < chunk.len() {
                    carry.truncate(carried);
                    carry.drain(..used.min(carried));
                    self.carry = carry;
                    return 0;
                }
                carry.drain(..used);
                self.carry = carry;
            }
            consumed = end;
            self.position = advanced(start, end);
        }
        let rest = chunk.get(consumed..).unwrap_or_default();
        let used = self.push_lines(rest, advanced(start, consumed), observed, builder);
        consumed += used;
        if consumed > 0 {
            self.position = advanced(start, consumed);
        }
        consumed
    }

    fn push_lines<S: RecordSink>(&mut self, chunk: &[u8], start: LogPosition, observed: u64, builder: &mut S) -> usize {
        match &mut self.decoder {
            FormatDecoder::Container(decoder) => decoder.push(chunk, line_position(start), observed, builder),
            FormatDecoder::Plain(decoder) => decoder.push(chunk, line_position(start), observed, builder),
        }
    }

    /// Keeps the unfinished line at the end of a generation, which goes on in the next one.
    pub(super) fn carry_over(&mut self, rest: &[u8], start: LogPosition) {
        if self.carry.is_empty() {
            self.carry_start = start;
        }
        self.carry.extend_from_slice(rest);
        self.position = advanced(start, rest.len());
    }

    /// Hands on an unfinished line, as nothing will follow. Returns the number of bytes of `rest` that were consumed.
    pub(super) fn flush<S: RecordSink>(
        &mut self,
        rest: &[u8],
        start: LogPosition,
        observed: u64,
        builder: &mut S,
    ) -> usize {
        if !self.carry.is_empty() {
            self.carry.extend_from_slice(rest);
            let carry = std::mem::take(&mut self.carry);
            self.flush_lines(&carry, self.carry_start, observed, builder);
            self.position = advanced(start, rest.len());
            return rest.len();
        }
        let used = self.flush_lines(rest, start, observed, builder);
        if used > 0 {
            self.position = advanced(start, used);
        }
        used
    }

    fn flush_lines<S: RecordSink>(&mut self, rest: &[u8], start: LogPosition, observed: u64, builder: &mut S) -> usize {
        match &mut self.decoder {
            FormatDecoder::Container(decoder) => {
                decoder.flush(rest, line_position(start), observed, builder);
                rest.len()
            }
            FormatDecoder::Plain(decoder) => decoder.flush(rest, line_position(start), observed, builder),
        }
    }

    /// Hands on what ends at the end of `rest`, where another reader of the same log has begun a record. Parts of lines
    /// stay.
    pub(super) fn flush_record<S: RecordSink>(
        &mut self,
        rest: &[u8],
        start: LogPosition,
        observed: u64,
        builder: &mut S,
    ) -> usize {
        match &self.decoder {
            FormatDecoder::Container(_) => 0,
            FormatDecoder::Plain(_) => self.flush(rest, start, observed, builder),
        }
    }

    /// Hands on the parts of lines and the stack traces that nothing has followed for long enough.
    pub(super) fn flush_due<S: RecordSink>(&mut self, now: u64, builder: &mut S) {
        if let FormatDecoder::Container(decoder) = &mut self.decoder {
            decoder.flush_due(now, builder);
        }
    }

    /// When something is due, in nanoseconds since 1970.
    pub(super) fn deadline(&self) -> Option<u64> {
        match &self.decoder {
            FormatDecoder::Container(decoder) => decoder.deadline(),
            FormatDecoder::Plain(_) => None,
        }
    }

    /// Behind the last byte that was consumed.
    pub(super) fn position(&self) -> LogPosition {
        self.position
    }

    /// Where a reader has to begin again so that it loses nothing.
    pub(super) fn commit_position(&self) -> LogPosition {
        let open = match &self.decoder {
            FormatDecoder::Container(decoder) if decoder.has_open_record() => {
                let LinePosition { generation, offset } = decoder.commit_position();
                Some(LogPosition { generation, offset })
            }
            FormatDecoder::Container(_) | FormatDecoder::Plain(_) => None,
        };
        let carry = (!self.carry.is_empty()).then_some(self.carry_start);
        [open, carry].into_iter().flatten().fold(self.position, Ord::min)
    }

    /// Whether a record is unfinished that was not only cut by a rotation.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.decoder, FormatDecoder::Plain(_))
    }
}

fn line_position(position: LogPosition) -> LinePosition {
    LinePosition { generation: position.generation, offset: position.offset }
}

fn advanced(position: LogPosition, bytes: usize) -> LogPosition {
    LogPosition { offset: position.offset.saturating_add(bytes as u64), ..position }
}
