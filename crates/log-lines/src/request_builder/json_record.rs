//! Records whose line is a JSON object.

use std::ops::Range;

use kubewake_otlp::wire::LEN;
use kubewake_otlp::wire::{put_fixed32, put_fixed64, put_tag, put_uint};

use super::text_record::{ATTRIBUTES, BODY, TIME, encode_own_attributes};
use super::{LOG_RECORDS, RecordSettings, RequestBuilder};
use crate::any_value::{STRING, put_field, put_string_attribute};
use crate::body_parsing::BodyParsing;
use crate::json::{JsonScratch, JsonString, close, close_with_room, open, skip_blanks, skip_value};
use crate::record::LineRecord;
use crate::well_known::{
    KeyMeaning, WellKnownKey, lookup_key, read_flags, read_severity, read_span_id, read_trace_context, read_trace_id,
};

/// Field numbers of `LogRecord`.
const SEVERITY_NUMBER: u32 = 2;
const SEVERITY_TEXT: u32 = 3;
const DROPPED_ATTRIBUTES: u32 = 7;
const FLAGS: u32 = 8;
const TRACE_ID: u32 = 9;
const SPAN_ID: u32 = 10;

/// Bytes of room for the length of a record: most have 128 to 16 383 bytes.
const RECORD_LENGTH_ROOM: usize = 2;

/// A well-known member of the line that is being read, which is written when all of them are known.
#[derive(Clone, Debug)]
struct NotedMember {
    key: &'static WellKnownKey,
    value: NotedValue,
    /// Whether it has become a field of the record.
    is_used: bool,
}

/// The value of a well-known member, by its place in the line.
#[derive(Clone, Debug)]
struct NotedValue {
    /// All of the value.
    written: Range<usize>,
    /// Of a string what is between its quotes, else the same as `written`.
    content: Range<usize>,
    kind: NotedKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotedKind {
    Text {
        has_escapes: bool,
    },
    /// A number or a truth value.
    Word,
    /// An object, a list or null.
    NoScalar,
}

impl NotedValue {
    /// Reads the value at the beginning of `text`, the rest of `line`. Returns it with the bytes behind it. Escapes are
    /// checked when the value is written.
    #[inline]
    fn read<'a>(line: &[u8], text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let at = line.len() - text.len();
        if let [b'"', content @ ..] = text {
            let (JsonString { raw, has_escapes }, rest) = JsonString::read(content)?;
            let content = at + 1..at + 1 + raw.len();
            let written = at..content.end + 1;
            return Some((Self { written, content, kind: NotedKind::Text { has_escapes } }, rest));
        }
        let (value, rest) = skip_value(text)?;
        let written = at..at + value.len();
        let is_word = !matches!(text, [b'{' | b'[' | b'n', ..]);
        let kind = if is_word { NotedKind::Word } else { NotedKind::NoScalar };
        Some((Self { content: written.clone(), written, kind }, rest))
    }

    /// The text of a scalar: of a string what it means, else what is written. Returns it with whether it is a string.
    fn resolve<'a>(&self, line: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<(&'a [u8], bool)> {
        let raw = line.get(self.content.clone())?;
        match self.kind {
            NotedKind::Text { has_escapes } => Some((JsonString { raw, has_escapes }.resolve(scratch)?, true)),
            NotedKind::Word => Some((raw, false)),
            NotedKind::NoScalar => None,
        }
    }
}

/// Buffers for one JSON line after the other.
#[derive(Debug, Default)]
pub(super) struct JsonBuffers {
    scratch: JsonScratch,
    noted: Vec<NotedMember>,
    text: Vec<u8>,
}

impl JsonBuffers {
    pub(super) fn scratch(&mut self) -> &mut JsonScratch {
        &mut self.scratch
    }

    /// Releases the memory that long lines have left.
    pub(super) fn release_memory(&mut self) {
        self.scratch.release_memory();
        self.text = Vec::new();
    }
}

/// Whether a body may be a JSON object: it is in braces. Only then is it worth parsing.
#[inline]
pub(super) fn is_in_braces(body: &[u8]) -> bool {
    matches!(body.trim_ascii(), [b'{', .., b'}'])
}

impl RequestBuilder {
    /// Writes a record whose line is a JSON object, as UTF-8. Returns false if it is none, and has written nothing
    /// then.
    pub(super) fn put_json_record(&mut self, record: &LineRecord<'_>, line: &str) -> bool {
        let mark = self.out.len();
        let mut buffers = std::mem::take(&mut self.json);
        buffers.noted.clear();
        buffers.scratch.begin();
        put_tag(&mut self.out, LOG_RECORDS, LEN);
        self.out.extend_from_slice(&[0; RECORD_LENGTH_ROOM]);
        let start = self.out.len();
        let dropped = self.put_json_fields(record, line.as_bytes(), &mut buffers);
        self.json = buffers;
        match dropped {
            Some(dropped) => {
                close_with_room(&mut self.out, start, RECORD_LENGTH_ROOM);
                self.counts.parsed_bodies += 1;
                self.counts.dropped_attributes += dropped;
                true
            }
            None => {
                self.out.truncate(mark);
                self.counts.unparsed_bodies += 1;
                false
            }
        }
    }

    /// Writes the fields of a record. Returns how many members were dropped; `None` if the line is no JSON object.
    fn put_json_fields(&mut self, record: &LineRecord<'_>, line: &[u8], buffers: &mut JsonBuffers) -> Option<u64> {
        let JsonBuffers { scratch, noted, text } = buffers;
        let parsing = self.settings.parsing;
        if record.time != 0 {
            put_fixed64(&mut self.out, TIME, record.time);
        }
        let [b'{', members @ ..] = skip_blanks(line) else { return None };
        let Self { out, envelope, settings, .. } = self;
        let mut dropped = 0;
        let rest = scratch.read_members(members, |scratch, key, value| {
            if let Some(known) = lookup_key(key).filter(|known| is_moved(known.meaning, parsing)) {
                let (value, rest) = NotedValue::read(line, value)?;
                note(noted, known, value);
                return Some(rest);
            }
            if is_own_key(key, settings, record) || envelope.has_record_attribute(key) {
                dropped += 1;
                return Some(skip_value(value)?.1);
            }
            scratch.put_member(out, ATTRIBUTES, key, value, 1)
        })?;
        if !skip_blanks(rest).is_empty() {
            return None;
        }
        scratch.end_record(out);
        put_severity(out, line, noted, text);
        put_trace_context(out, line, noted, text);
        put_body(out, scratch, line, noted, parsing)?;
        for member in noted.iter().filter(|member| !member.is_used) {
            let value = line.get(member.value.written.clone())?;
            scratch.put_key_value(out, ATTRIBUTES, member.key.name.as_bytes(), value, 1)?;
        }
        if dropped > 0 {
            put_uint(out, DROPPED_ATTRIBUTES, dropped);
        }
        encode_own_attributes(&self.settings, record, scratch, out);
        out.extend_from_slice(self.tails.for_stream(record.stream));
        Some(dropped)
    }
}

/// Whether a key is one that the agent writes to this record.
#[inline]
fn is_own_key(key: &[u8], settings: &RecordSettings, record: &LineRecord<'_>) -> bool {
    match key {
        b"log.iostream" => settings.adds_stream && record.stream.is_some(),
        b"log.original" => settings.parsing.moves_message && settings.parsing.keeps_original,
        b"logtag" => settings.adds_tags && !record.tags.is_empty(),
        b"log.file.record_number" => settings.adds_record_number,
        b"log.file.record_offset" => settings.adds_record_offset,
        b"attrs" => !record.docker_attributes.is_empty(),
        _ => false,
    }
}

/// Whether members with this meaning become fields of the record.
#[inline]
fn is_moved(meaning: KeyMeaning, parsing: BodyParsing) -> bool {
    match meaning {
        KeyMeaning::Message => parsing.moves_message,
        KeyMeaning::Severity => parsing.moves_severity,
        KeyMeaning::TraceId(_) | KeyMeaning::SpanId(_) | KeyMeaning::TraceFlags | KeyMeaning::TraceParent => {
            parsing.moves_trace_context
        }
    }
}

/// Notes a well-known member. Of two with the same key the last one counts.
fn note(noted: &mut Vec<NotedMember>, key: &'static WellKnownKey, value: NotedValue) {
    match noted.iter_mut().find(|member| std::ptr::eq(member.key, key)) {
        Some(member) => member.value = value,
        None => noted.push(NotedMember { key, value, is_used: false }),
    }
}

/// Finds the member with the best rank among those with a meaning that `select` takes, and whose value `read` accepts.
/// Marks it as used.
fn take_best<T, M>(
    noted: &mut [NotedMember],
    line: &[u8],
    scratch: &mut Vec<u8>,
    select: impl Fn(KeyMeaning) -> Option<M>,
    mut read: impl FnMut(M, &[u8], bool) -> Option<T>,
) -> Option<T> {
    let mut best: Option<(&mut NotedMember, T)> = None;
    for member in noted {
        if let Some(meaning) = select(member.key.meaning)
            && best.as_ref().is_none_or(|(best, _)| member.key.rank < best.key.rank)
            && let Some((value, is_text)) = member.value.resolve(line, scratch)
            && let Some(found) = read(meaning, value, is_text)
        {
            best = Some((member, found));
        }
    }
    let (member, found) = best?;
    member.is_used = true;
    Some(found)
}

/// Writes the severity. A name that is not known is its text without a number.
fn put_severity(out: &mut Vec<u8>, line: &[u8], noted: &mut [NotedMember], scratch: &mut Vec<u8>) {
    let is_severity = |meaning| (meaning == KeyMeaning::Severity).then_some(());
    let found = take_best(noted, line, scratch, is_severity, |(), level, is_text| {
        let severity = read_severity(level);
        (!level.is_empty() && (is_text || severity.is_some())).then_some(severity)
    });
    let Some(severity) = found else { return };
    if let Some(severity) = severity {
        put_uint(out, SEVERITY_NUMBER, u64::from(severity.0));
    }
    let is_level = |member: &&NotedMember| member.is_used && member.key.meaning == KeyMeaning::Severity;
    let level = noted.iter().find(is_level).and_then(|member| member.value.resolve(line, scratch));
    put_field(out, SEVERITY_TEXT, level.map_or(&[][..], |(text, _)| text));
}

/// Writes the ids: those of their own keys, or else those of `traceparent`. A span without a trace is none.
fn put_trace_context(out: &mut Vec<u8>, line: &[u8], noted: &mut [NotedMember], scratch: &mut Vec<u8>) {
    let trace_form = |meaning| if let KeyMeaning::TraceId(form) = meaning { Some(form) } else { None };
    let span_form = |meaning| if let KeyMeaning::SpanId(form) = meaning { Some(form) } else { None };
    let is_flags = |meaning| (meaning == KeyMeaning::TraceFlags).then_some(());
    let is_parent = |meaning| (meaning == KeyMeaning::TraceParent).then_some(());
    let trace_id = take_best(noted, line, scratch, trace_form, |form, value, _| read_trace_id(value, form));
    if let Some(trace_id) = trace_id {
        let span_id = take_best(noted, line, scratch, span_form, |form, value, _| read_span_id(value, form));
        let flags = take_best(noted, line, scratch, is_flags, |(), value, is_text| read_flags(value, is_text));
        put_ids(out, &trace_id, span_id.as_ref(), flags.unwrap_or(0));
    } else if let Some(parent) = take_best(noted, line, scratch, is_parent, |(), value, _| read_trace_context(value)) {
        put_ids(out, &parent.trace_id, Some(&parent.span_id), parent.flags);
    }
}

fn put_ids(out: &mut Vec<u8>, trace_id: &[u8; 16], span_id: Option<&[u8; 8]>, flags: u8) {
    if flags != 0 {
        put_fixed32(out, FLAGS, u32::from(flags));
    }
    put_field(out, TRACE_ID, trace_id);
    if let Some(span_id) = span_id {
        put_field(out, SPAN_ID, span_id);
    }
}

/// Writes the message as the body, and the line as an attribute if it shall be kept. Without a message the line is the
/// body, so that no body is empty.
fn put_body(
    out: &mut Vec<u8>,
    scratch: &mut JsonScratch,
    line: &[u8],
    noted: &mut [NotedMember],
    parsing: BodyParsing,
) -> Option<()> {
    let is_message = |member: &&mut NotedMember| {
        // A message that is null is none.
        member.key.meaning == KeyMeaning::Message && line.get(member.value.written.start) != Some(&b'n')
    };
    match noted.iter_mut().filter(is_message).min_by_key(|member| member.key.rank) {
        Some(message) => {
            message.is_used = true;
            scratch.put_value(out, BODY, line.get(message.value.written.clone())?, 1)?;
            if parsing.keeps_original {
                put_string_attribute(out, ATTRIBUTES, b"log.original", line);
            }
        }
        None => {
            let body = open(out, BODY);
            put_field(out, STRING, line);
            close(out, body);
        }
    }
    Some(())
}
