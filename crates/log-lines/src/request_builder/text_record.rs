//! Records whose body is the text of the line.

use kubewake_otlp::wire::{len_field_size, put_fixed64, put_header};

use super::json_record::is_in_braces;
use super::{LOG_RECORDS, RecordSettings, RequestBuilder};
use crate::any_value::{BYTES, STRING, Scalar, put_attribute, put_string_attribute};
use crate::envelope::RecordEnvelope;
use crate::json::JsonScratch;
use crate::record::{BodyKind, LineRecord, OutputStream};

/// Field numbers of `LogRecord`.
pub(crate) const TIME: u32 = 1;
pub(crate) const BODY: u32 = 5;
pub(crate) const ATTRIBUTES: u32 = 6;
const OBSERVED_TIME: u32 = 11;

/// Bytes of a `fixed64` with its tag.
const FIXED64_LENGTH: usize = 9;

/// The ends of records, which are the same for many: attributes and the observed time.
#[derive(Debug)]
pub(crate) struct RecordTails {
    observed: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    no_stream: Vec<u8>,
}

impl RecordTails {
    pub(super) fn new(envelope: &RecordEnvelope, settings: &RecordSettings) -> Self {
        let tail = |stream: Option<OutputStream>| {
            let mut out = Vec::new();
            if let Some(stream) = stream.filter(|_| settings.adds_stream) {
                put_string_attribute(&mut out, ATTRIBUTES, b"log.iostream", stream.as_str().as_bytes());
            }
            out.extend_from_slice(envelope.attributes());
            put_fixed64(&mut out, OBSERVED_TIME, 0);
            out
        };
        Self {
            observed: 0,
            stdout: tail(Some(OutputStream::Stdout)),
            stderr: tail(Some(OutputStream::Stderr)),
            no_stream: tail(None),
        }
    }

    /// Sets the observed time.
    #[inline]
    pub(super) fn observe(&mut self, observed: u64) {
        if self.observed != observed {
            self.observed = observed;
            for tail in [&mut self.stdout, &mut self.stderr, &mut self.no_stream] {
                if let Some(time) = tail.last_chunk_mut::<8>() {
                    *time = observed.to_le_bytes();
                }
            }
        }
    }

    #[inline]
    pub(super) fn for_stream(&self, stream: Option<OutputStream>) -> &[u8] {
        match stream {
            Some(OutputStream::Stdout) => &self.stdout,
            Some(OutputStream::Stderr) => &self.stderr,
            None => &self.no_stream,
        }
    }
}

impl RequestBuilder {
    /// Writes a record whose body is the line, or whose attributes are the members of the JSON object that the line is.
    #[inline]
    pub(super) fn put_record(&mut self, record: &LineRecord<'_>) {
        match record.body_kind {
            BodyKind::Text => match std::str::from_utf8(record.body) {
                Ok(text) => self.put_text(record, text),
                Err(_) => {
                    let text = String::from_utf8_lossy(record.body);
                    self.put_text(record, &text);
                }
            },
            BodyKind::RawText => self.put_body(record, STRING, record.body),
            BodyKind::Bytes => self.put_body(record, BYTES, record.body),
        }
    }

    #[inline]
    fn put_text(&mut self, record: &LineRecord<'_>, text: &str) {
        let may_be_json = self.settings.parsing.parses_json && is_in_braces(text.as_bytes());
        if !(may_be_json && self.put_json_record(record, text)) {
            self.put_body(record, STRING, text.as_bytes());
        }
    }

    #[inline]
    fn put_body(&mut self, record: &LineRecord<'_>, value_field: u32, body: &[u8]) {
        let settings = self.settings;
        let has_own_attributes = settings.adds_record_number
            || settings.adds_record_offset
            || (settings.adds_tags && !record.tags.is_empty())
            || !record.docker_attributes.is_empty();
        let mut own_attributes = Vec::new();
        if has_own_attributes {
            encode_own_attributes(&settings, record, self.json.scratch(), &mut own_attributes);
        }
        let tail = self.tails.for_stream(record.stream);
        let time_length = if record.time == 0 { 0 } else { FIXED64_LENGTH };
        let value_length = len_field_size(value_field, body.len());
        let content_length = time_length + len_field_size(BODY, value_length) + own_attributes.len() + tail.len();
        let out = &mut self.out;
        put_header(out, LOG_RECORDS, content_length);
        if record.time != 0 {
            put_fixed64(out, TIME, record.time);
        }
        put_header(out, BODY, value_length);
        put_header(out, value_field, body.len());
        out.extend_from_slice(body);
        out.extend_from_slice(&own_attributes);
        out.extend_from_slice(tail);
    }
}

/// Writes the attributes that are different for each record.
pub(super) fn encode_own_attributes(
    settings: &RecordSettings,
    record: &LineRecord<'_>,
    scratch: &mut JsonScratch,
    out: &mut Vec<u8>,
) {
    if settings.adds_tags && !record.tags.is_empty() {
        let tags = String::from_utf8_lossy(record.tags);
        put_string_attribute(out, ATTRIBUTES, b"logtag", tags.as_bytes());
    }
    if settings.adds_record_number {
        put_attribute(out, ATTRIBUTES, b"log.file.record_number", Scalar::Int(record.number as i64));
    }
    if settings.adds_record_offset {
        put_attribute(out, ATTRIBUTES, b"log.file.record_offset", Scalar::Int(record.start.offset as i64));
    }
    if !record.docker_attributes.is_empty() {
        let attributes = String::from_utf8_lossy(record.docker_attributes);
        let mark = out.len();
        scratch.begin();
        // What is too deep is left out as a whole.
        if scratch.put_key_value(out, ATTRIBUTES, b"attrs", attributes.as_bytes(), 1).is_none() {
            out.truncate(mark);
        }
    }
}
