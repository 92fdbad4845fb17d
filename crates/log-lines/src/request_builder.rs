//! Builds OTLP requests from records, without a struct for each record and without a second copy of their bodies.
//!
//! *Guarantees*: a request is one `ExportLogsServiceRequest` with one `ResourceLogs` and one `ScopeLogs`. Its strings
//! are UTF-8, except those of [`BodyKind::RawText`](crate::BodyKind). Everything is written once: the lengths of the
//! messages around the records are written in front of them when the request ends, in room that was left there.
//!
//! *Assumes*: the envelope holds valid messages.

mod json_record;
mod text_record;

use std::sync::Arc;

use bytes::Bytes;
use kubewake_otlp::wire::{len_field_size, put_header};

use crate::body_parsing::{BodyParsing, ParseCounts};
use crate::envelope::RecordEnvelope;
use crate::limits::RequestLimits;
use crate::record::{LinePosition, LineRecord, RecordSink};

use json_record::JsonBuffers;
use text_record::RecordTails;

/// Field numbers of the messages around records.
const RESOURCE_LOGS: u32 = 1;
const SCOPE_LOGS: u32 = 2;
pub(crate) const LOG_RECORDS: u32 = 2;

/// Bytes that two tags and two lengths need at most.
const MAX_HEADERS_LENGTH: usize = 2 * (1 + 10);

/// Which attributes a record gets beside those of its envelope.
#[derive(Clone, Copy, Debug)]
pub struct RecordSettings {
    /// What is read from the text of a line.
    pub parsing: BodyParsing,
    /// `log.iostream`: the container's stream.
    pub adds_stream: bool,
    /// `logtag`: the tags of a CRI line, as the Collector's operator `container` leaves them.
    pub adds_tags: bool,
    /// `log.file.record_number`.
    pub adds_record_number: bool,
    /// `log.file.record_offset`: where in its file the record begins.
    pub adds_record_offset: bool,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            parsing: BodyParsing::OFF,
            adds_stream: true,
            adds_tags: false,
            adds_record_number: false,
            adds_record_offset: false,
        }
    }
}

/// A finished request.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// The `ExportLogsServiceRequest`.
    pub body: Bytes,
    /// Its records, at least one.
    pub records: usize,
    /// Where its first record begins.
    pub start: LinePosition,
    /// What is complete once the request has been delivered: a reader that begins here loses nothing.
    pub commit: LinePosition,
    /// Earliest time of a record: that of its line, or else when it was read.
    pub first_time: u64,
    /// Latest time of a record.
    pub last_time: u64,
}

/// Builds the requests of one log. It is a [`RecordSink`]: a decoder writes into it until it is full.
#[derive(Debug)]
pub struct RequestBuilder {
    envelope: Arc<RecordEnvelope>,
    settings: RecordSettings,
    limits: RequestLimits,
    /// Room for the prefix, and the records behind it; empty if there is no record.
    out: Vec<u8>,
    /// Bytes of room for the prefix.
    headroom: usize,
    tails: RecordTails,
    json: JsonBuffers,
    counts: ParseCounts,
    records: usize,
    start: LinePosition,
    first_time: u64,
    last_time: u64,
    /// Bytes of lines that are announced and have not been written.
    expected_bytes: usize,
}

impl RequestBuilder {
    pub fn new(envelope: Arc<RecordEnvelope>, settings: RecordSettings, limits: RequestLimits) -> Self {
        let headroom = MAX_HEADERS_LENGTH + envelope.resource().len() + envelope.scope().len();
        let tails = RecordTails::new(&envelope, &settings);
        Self {
            envelope,
            settings,
            limits,
            out: Vec::new(),
            headroom,
            tails,
            json: JsonBuffers::default(),
            counts: ParseCounts::default(),
            records: 0,
            start: LinePosition::default(),
            first_time: u64::MAX,
            last_time: 0,
            expected_bytes: 0,
        }
    }

    /// Changes what the records of the next request have in common, after a request was finished. With records in an
    /// unfinished request it changes nothing, and returns false.
    pub fn set_envelope(&mut self, envelope: Arc<RecordEnvelope>) -> bool {
        if self.records > 0 {
            return false;
        }
        let counts = self.counts;
        *self = Self { counts, ..Self::new(envelope, self.settings, self.limits) };
        true
    }

    /// The number of records in the unfinished request.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Bytes of the unfinished request, without what its records have in common.
    pub fn len(&self) -> usize {
        self.out.len().saturating_sub(self.headroom)
    }

    /// Whether the unfinished request has no record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Whether the unfinished request has reached a bound.
    pub fn is_full(&self) -> bool {
        self.records >= self.limits.max_records || self.len() >= self.limits.max_bytes
    }

    /// Bytes of memory that the unfinished request occupies.
    pub fn capacity(&self) -> usize {
        self.out.capacity()
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> ParseCounts {
        std::mem::take(&mut self.counts)
    }

    /// Ends the request. `commit` is the position that its delivery allows: that of the decoder,
    /// [`ContainerLogDecoder::commit_position`](crate::ContainerLogDecoder::commit_position). `None` without a record.
    pub fn finish(&mut self, commit: LinePosition) -> Option<LogRequest> {
        if self.records == 0 {
            return None;
        }
        self.json.release_memory();
        let mut out = std::mem::take(&mut self.out);
        let records_length = out.len().saturating_sub(self.headroom);
        let prefix = self.encode_prefix(records_length);
        let start = self.headroom.saturating_sub(prefix.len());
        if let Some(room) = out.get_mut(start..self.headroom) {
            room.copy_from_slice(&prefix);
        }
        // Memory is charged by capacity; a copy is cheaper than as many unused bytes for as long as a request may wait.
        if out.capacity() / 2 > out.len() {
            out.shrink_to_fit();
        }
        let request = LogRequest {
            body: Bytes::from(out).slice(start..),
            records: self.records,
            start: self.start,
            commit,
            first_time: self.first_time,
            last_time: self.last_time,
        };
        (self.records, self.first_time, self.last_time) = (0, u64::MAX, 0);
        Some(request)
    }

    /// The bytes in front of the records.
    fn encode_prefix(&self, records_length: usize) -> Vec<u8> {
        let resource = self.envelope.resource();
        let scope = self.envelope.scope();
        let scope_logs = scope.len() + records_length;
        let resource_logs = resource.len() + len_field_size(SCOPE_LOGS, scope_logs);
        let mut prefix = Vec::with_capacity(self.headroom);
        put_header(&mut prefix, RESOURCE_LOGS, resource_logs);
        prefix.extend_from_slice(resource);
        put_header(&mut prefix, SCOPE_LOGS, scope_logs);
        prefix.extend_from_slice(scope);
        prefix
    }

    /// Makes room for the prefix, and for the records of the lines that were announced.
    fn begin(&mut self, start: LinePosition) {
        let expected = self.expected_bytes.min(self.limits.max_bytes);
        // What a record has beside its body is about as long as what a line has. An eighth is for short lines.
        self.out.reserve(self.headroom + expected + expected / 8);
        self.out.resize(self.headroom, 0);
        self.start = start;
    }
}

impl RecordSink for RequestBuilder {
    #[inline]
    fn has_room(&self) -> bool {
        !self.is_full()
    }

    fn expect_bytes(&mut self, bytes: usize) {
        self.expected_bytes = bytes;
        if self.records > 0 {
            let missing = self.limits.max_bytes.saturating_sub(self.len());
            self.out.reserve(bytes.min(missing));
        }
    }

    #[inline]
    fn put(&mut self, record: &LineRecord<'_>) {
        if self.records == 0 {
            self.begin(record.start);
        }
        self.records += 1;
        let time = if record.time == 0 { record.observed } else { record.time };
        self.first_time = self.first_time.min(time);
        self.last_time = self.last_time.max(time);
        self.tails.observe(record.observed);
        self.put_record(record);
    }
}
