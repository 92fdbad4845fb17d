//! Lines that container runtimes write, of containerd, CRI-O and Docker, as records.
//!
//! *Guarantees*: every byte of a log is part of exactly one record, or is counted. Where a log is cut into chunks makes
//! no difference. The commit position never passes a part of a line whose end has not been read, so that a restart from
//! there loses nothing.
//!
//! *Assumes*: chunks arrive in order, each from where the one before was consumed to. A new generation of a file
//! continues the lines of the one before.
//!
//! *Does not*: read, wait, or keep bytes of unfinished lines; those stay with the caller. Only the parts of a line that
//! a runtime has split are kept, and the lines of a stack trace that may go on: for each of the two streams at most the
//! size of one record and one line more.

mod container_settings;
mod cri_line;
mod docker_line;
mod held_trace;
mod open_record;
#[cfg(test)]
mod tests;
mod trace_lines;

pub use container_settings::{ContainerFormat, ContainerSettings, DockerBodies};
use cri_line::CriLine;
use docker_line::DockerLine;
use held_trace::HeldTrace;
use open_record::OpenRecord;

use crate::limits::{DecodeCounts, OversizeBehavior};
use crate::record::{BodyKind, LinePosition, LineRecord, OutputStream, RecordSink};
use crate::timestamp::TimestampReader;

/// Bytes of a line beside its content: time, stream and tags, or the other fields of a Docker line.
const LINE_OVERHEAD: usize = 4096;
/// Bytes of memory that are kept for the text of the next Docker line.
const SCRATCH_CAPACITY: usize = 1024;

/// Reads the log of one container. It goes on from generation to generation of the log.
#[derive(Debug)]
pub struct ContainerLogDecoder {
    settings: ContainerSettings,
    clock: TimestampReader,
    stdout: OpenRecord,
    stderr: OpenRecord,
    /// Lines of a runtime that name no stream, and lines of no format.
    other: OpenRecord,
    /// Stack traces, if they are joined.
    stdout_trace: HeldTrace,
    stderr_trace: HeldTrace,
    other_trace: HeldTrace,
    /// Set within a line that is longer than a line may be: the stream that it belongs to, and whether it was a part.
    long_line: Option<LongLine>,
    /// The text of a Docker line with escapes.
    scratch: Vec<u8>,
    /// Behind the last line that was consumed.
    position: LinePosition,
    /// Records that were handed on.
    number: u64,
    counts: DecodeCounts,
}

/// The rest of a line that is longer than a line may be.
#[derive(Clone, Copy, Debug)]
struct LongLine {
    stream: Option<OutputStream>,
    time: u64,
    is_final: bool,
}

impl ContainerLogDecoder {
    pub fn new(settings: ContainerSettings) -> Self {
        Self {
            settings,
            clock: TimestampReader::default(),
            stdout: OpenRecord::default(),
            stderr: OpenRecord::default(),
            other: OpenRecord::default(),
            stdout_trace: HeldTrace::default(),
            stderr_trace: HeldTrace::default(),
            other_trace: HeldTrace::default(),
            long_line: None,
            scratch: Vec::new(),
            position: LinePosition::default(),
            number: 0,
            counts: DecodeCounts::default(),
        }
    }

    /// The longest chunk that may be needed before a line can be consumed: a caller whose chunk is shorter and was not
    /// consumed reads more of the file behind it.
    pub fn max_line_bytes(&self) -> usize {
        self.settings.max_record_bytes.saturating_add(LINE_OVERHEAD)
    }

    /// Reads the complete lines of a chunk that begins at `start` and was read at `observed`, in nanoseconds since
    /// 1970. Returns the number of bytes consumed. What is left is an unfinished line, or the sink has no more room;
    /// the next chunk begins with it.
    pub fn push<S: RecordSink>(&mut self, chunk: &[u8], start: LinePosition, observed: u64, sink: &mut S) -> usize {
        sink.expect_bytes(chunk.len());
        let max_line_bytes = self.max_line_bytes();
        let mut consumed = 0;
        let mut rest = chunk;
        while sink.has_room() && !rest.is_empty() {
            let at = start.advanced_by(consumed);
            // Looking no further than a line may reach makes no difference between chunks that are cut here or there.
            let window = rest.get(..max_line_bytes).unwrap_or(rest);
            let length = match memchr::memchr(b'\n', window) {
                Some(end) => {
                    let line = rest.get(..end).unwrap_or_default();
                    self.position = at.advanced_by(end + 1);
                    self.put_line_end(line, at, observed, sink);
                    end + 1
                }
                None if window.len() == max_line_bytes => {
                    self.position = at.advanced_by(window.len());
                    self.put_long_line(window, at, observed, sink);
                    window.len()
                }
                None => break,
            };
            consumed += length;
            rest = rest.get(length..).unwrap_or_default();
        }
        self.counts.bytes += consumed as u64;
        consumed
    }

    /// Ends the log: hands on the unfinished line that the caller still has, and the parts whose end never came, as a
    /// container leaves them that ends its output without a line feed. Consumes all of `rest`.
    pub fn flush<S: RecordSink>(&mut self, rest: &[u8], start: LinePosition, observed: u64, sink: &mut S) {
        if !rest.is_empty() {
            self.position = start.advanced_by(rest.len());
            self.counts.bytes += rest.len() as u64;
            self.put_line_end(rest, start, observed, sink);
        }
        self.long_line = None;
        for stream in [Some(OutputStream::Stdout), Some(OutputStream::Stderr), None] {
            if self.open_record(stream).start.is_some() {
                self.counts.unfinished_records += 1;
                self.put_open_record(stream, observed, sink);
            }
        }
        for stream in [Some(OutputStream::Stdout), Some(OutputStream::Stderr), None] {
            self.release_trace(stream, observed, sink);
        }
    }

    /// Hands on what has waited for its next line for long enough: parts of a line for five seconds, and the lines of a
    /// stack trace, or one that may be its head, for one. A caller does so only where it has read all that was written.
    pub fn flush_due<S: RecordSink>(&mut self, now: u64, sink: &mut S) {
        let is_due = |deadline: Option<u64>| deadline.is_some_and(|deadline| deadline <= now);
        for stream in [Some(OutputStream::Stdout), Some(OutputStream::Stderr), None] {
            if is_due(self.open_record(stream).deadline()) {
                self.counts.unfinished_records += 1;
                self.put_open_record(stream, now, sink);
            }
            if is_due(self.held_trace(stream).deadline()) {
                self.release_trace(stream, now, sink);
            }
        }
    }

    /// When there is something for [`ContainerLogDecoder::flush_due`], in nanoseconds since 1970; `None` if nothing
    /// waits.
    pub fn deadline(&self) -> Option<u64> {
        let parts = [&self.stdout, &self.stderr, &self.other].map(OpenRecord::deadline);
        let traces = [&self.stdout_trace, &self.stderr_trace, &self.other_trace].map(HeldTrace::deadline);
        parts.into_iter().chain(traces).flatten().min()
    }

    /// Where a reader has to begin again so that it loses nothing: in front of the parts whose end has not been read,
    /// and else behind the last line that was consumed.
    pub fn commit_position(&self) -> LinePosition {
        let starts = [self.stdout.start, self.stderr.start, self.other.start];
        let traces = [self.stdout_trace.start(), self.stderr_trace.start(), self.other_trace.start()];
        starts.into_iter().chain(traces).flatten().fold(self.position, Ord::min)
    }

    /// Whether parts or lines are kept whose end has not been read.
    pub fn has_open_record(&self) -> bool {
        self.commit_position() != self.position
    }

    /// Bytes of memory that the kept parts occupy.
    pub fn held_bytes(&self) -> usize {
        let traces = [&self.stdout_trace, &self.stderr_trace, &self.other_trace].map(|trace| &trace.record);
        let open_records = [&self.stdout, &self.stderr, &self.other].into_iter().chain(traces);
        self.scratch.capacity() + open_records.map(OpenRecord::held_bytes).sum::<usize>()
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

    /// A complete line, or the end of one that was longer than a line may be.
    #[inline]
    fn put_line_end<S: RecordSink>(&mut self, line: &[u8], at: LinePosition, observed: u64, sink: &mut S) {
        self.counts.lines += 1;
        match self.long_line.take() {
            None => self.put_line(line, true, at, observed, sink),
            Some(long) => {
                self.open_record(long.stream).begin(at, long.time, &[]);
                self.put_part(long.stream, line, long.is_final, at, observed, sink);
            }
        }
    }

    /// The beginning, or a piece from the middle, of a line that is longer than a line may be.
    #[cold]
    fn put_long_line<S: RecordSink>(&mut self, piece: &[u8], at: LinePosition, observed: u64, sink: &mut S) {
        match self.long_line {
            None => self.put_line(piece, false, at, observed, sink),
            Some(long) => {
                self.open_record(long.stream).begin(at, long.time, &[]);
                self.put_part(long.stream, piece, false, at, observed, sink);
            }
        }
    }

    /// A line, or the beginning of one that is longer than a line may be.
    #[inline]
    fn put_line<S: RecordSink>(&mut self, line: &[u8], is_whole: bool, at: LinePosition, observed: u64, sink: &mut S) {
        if self.settings.format != ContainerFormat::Docker
            && let Some(cri) = CriLine::read(line, &mut self.clock)
        {
            let stream = Some(cri.stream);
            if cri.is_final && is_whole && self.open_record(stream).start.is_none() {
                let record = LineRecord {
                    time: cri.time,
                    tags: cri.tags,
                    body: cri.content,
                    ..empty_record(at, observed, stream)
                };
                if cri.content.len() <= self.settings.max_record_bytes {
                    return self.put_record(record, sink);
                }
            }
            self.long_line = (!is_whole).then_some(LongLine { stream, time: cri.time, is_final: cri.is_final });
            self.open_record(stream).begin(at, cri.time, cri.tags);
            return self.put_part(stream, cri.content, cri.is_final && is_whole, at, observed, sink);
        }
        self.put_other_line(line, is_whole, at, observed, sink);
    }

    /// A line that is no CRI line.
    fn put_other_line<S: RecordSink>(
        &mut self,
        line: &[u8],
        is_whole: bool,
        at: LinePosition,
        observed: u64,
        sink: &mut S,
    ) {
        if is_whole
            && self.settings.format != ContainerFormat::Cri
            && self.put_docker_line(line, at, observed, sink).is_some()
        {
            return;
        }
        self.counts.unparsed_lines += 1;
        self.long_line = (!is_whole).then_some(LongLine { stream: None, time: 0, is_final: true });
        // A carriage return in front of the line feed belongs to the line end where no runtime's format says otherwise.
        let line = if is_whole { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        if line.is_empty() && self.other.start.is_none() {
            self.counts.empty_lines += 1;
            return;
        }
        self.put_part(None, line, is_whole, at, observed, sink);
    }

    /// Reads a Docker line. `None` if it is none, and nothing has happened then.
    fn put_docker_line<S: RecordSink>(
        &mut self,
        line: &[u8],
        at: LinePosition,
        observed: u64,
        sink: &mut S,
    ) -> Option<()> {
        let docker = DockerLine::read(line, &mut self.clock)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let text = docker.content.resolve(&mut scratch)?;
        let is_joined = self.settings.docker == DockerBodies::Joined;
        let (content, is_final) = match text.strip_suffix(b"\n") {
            Some(content) if is_joined => (content, true),
            _ => (text, !is_joined),
        };
        if is_final
            && self.open_record(docker.stream).start.is_none()
            && content.len() <= self.settings.max_record_bytes
        {
            let record = LineRecord {
                time: docker.time,
                docker_attributes: docker.attributes,
                body: content,
                ..empty_record(at, observed, docker.stream)
            };
            self.put_record(record, sink);
        } else {
            let open = self.open_record(docker.stream);
            if open.start.is_none() {
                open.begin(at, docker.time, &[]);
                open.docker_attributes.extend_from_slice(docker.attributes);
            }
            self.put_part(docker.stream, content, is_final, at, observed, sink);
        }
        scratch.shrink_to(SCRATCH_CAPACITY);
        self.scratch = scratch;
        Some(())
    }

    /// Joins a part to the open record of its stream, and hands the record on at its end or when it is large enough.
    fn put_part<S: RecordSink>(
        &mut self,
        stream: Option<OutputStream>,
        content: &[u8],
        is_final: bool,
        at: LinePosition,
        observed: u64,
        sink: &mut S,
    ) {
        let ContainerSettings { max_record_bytes, oversize, .. } = self.settings;
        let mut split = false;
        let mut truncated_bytes = 0;
        let mut is_newly_cut = false;
        let record = self.open_record(stream);
        record.begin(at, 0, &[]);
        record.since = observed;
        match oversize {
            OversizeBehavior::Split => {
                record.text.extend_from_slice(content);
                split = !is_final && record.text.len() >= max_record_bytes;
            }
            OversizeBehavior::Truncate => {
                let room = max_record_bytes.saturating_sub(record.text.len());
                let (kept, dropped) = content.split_at_checked(room).unwrap_or((content, &[]));
                record.text.extend_from_slice(kept);
                truncated_bytes = dropped.len() as u64;
                is_newly_cut = !dropped.is_empty() && !record.is_cut;
                record.is_cut |= is_newly_cut;
            }
        }
        self.counts.split_records += u64::from(split);
        self.counts.truncated_bytes += truncated_bytes;
        self.counts.truncated_records += u64::from(is_newly_cut);
        if is_final || split {
            self.put_open_record(stream, observed, sink);
        }
    }

    /// Hands on the joined parts of a stream.
    fn put_open_record<S: RecordSink>(&mut self, stream: Option<OutputStream>, observed: u64, sink: &mut S) {
        let mut open = std::mem::take(self.open_record(stream));
        let record = LineRecord {
            time: open.time,
            tags: &open.tags,
            docker_attributes: &open.docker_attributes,
            body: &open.text,
            ..empty_record(open.start.unwrap_or(self.position), observed, stream)
        };
        self.put_record(record, sink);
        open.clear();
        *self.open_record(stream) = open;
    }

    /// Takes a whole line of a container: a record, or a line of a stack trace.
    #[inline]
    fn put_record<S: RecordSink>(&mut self, record: LineRecord<'_>, sink: &mut S) {
        if self.settings.joins_stack_traces {
            self.put_trace_line(record, sink);
        } else {
            self.hand_on(record, sink);
        }
    }

    #[inline]
    fn hand_on<S: RecordSink>(&mut self, mut record: LineRecord<'_>, sink: &mut S) {
        self.number += 1;
        self.counts.records += 1;
        record.number = self.number;
        // The line feed of a Docker line is part of its JSON; only lines of CRI have tags.
        let is_as_written =
            self.settings.docker == DockerBodies::AsWritten && record.stream.is_some() && record.tags.is_empty();
        if !is_as_written {
            record.body = self.settings.trimming.apply(record.body).0;
        }
        sink.put(&record);
    }

    #[inline]
    fn open_record(&mut self, stream: Option<OutputStream>) -> &mut OpenRecord {
        match stream {
            Some(OutputStream::Stdout) => &mut self.stdout,
            Some(OutputStream::Stderr) => &mut self.stderr,
            None => &mut self.other,
        }
    }
}

/// A record with nothing but its place.
#[inline]
fn empty_record<'a>(start: LinePosition, observed: u64, stream: Option<OutputStream>) -> LineRecord<'a> {
    LineRecord {
        start,
        number: 0,
        time: 0,
        observed,
        stream,
        tags: &[],
        docker_attributes: &[],
        body: &[],
        body_kind: BodyKind::Text,
    }
}
