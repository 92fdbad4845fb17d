//! The document of a record.
//!
//! It has the members `time`, `stream`, `level`, `trace_id` and `span_id`, the date and the body, then `kubernetes`
//! with what is known about the pod, `resource` with the other attributes of the resource, and the attributes of
//! the record. An attribute of the record whose name is that of another member is left out: a line cannot say that
//! it is from another pod.

mod date;
mod kubernetes;

use kubewake_config::model::{DateNotation, Dedot, HttpExporter, HttpFormat};
use kubewake_otlp::view::{LogRecord, Resource};

use crate::exporter::record_json::{FieldList, FieldValue, JsonOutput};

/// The attribute with the stream that a container wrote a line to.
const STREAM_ATTRIBUTE: &[u8] = b"log.iostream";
/// The attribute with the line as it was, if it is kept.
const ORIGINAL_ATTRIBUTE: &[u8] = b"log.original";
/// The member with the line as it was.
const ORIGINAL_KEY: &str = "log";
/// The member with the body of a record whose line is kept under the key of the body.
const OTHER_BODY_KEY: &[u8] = b"message";

/// How records become documents.
pub(super) struct DocumentStyle {
    pub(super) format: HttpFormat,
    date_key: Option<String>,
    date_format: DateNotation,
    body_key: String,
    merge_attributes: bool,
    dedot: Dedot,
}

impl DocumentStyle {
    pub(super) fn new(settings: &HttpExporter) -> Self {
        Self {
            format: settings.format,
            date_key: settings.date_key.clone(),
            date_format: settings.date_format,
            body_key: settings.body_key.clone(),
            merge_attributes: settings.merge_attributes,
            dedot: settings.dedot,
        }
    }

    /// Writes the document of a record. `now` is the time of a record without one.
    pub(super) fn write(&self, resource: &Resource<'_>, record: &LogRecord<'_>, now: u64, out: &mut JsonOutput<'_>) {
        let time = [record.time(), record.observed_time()].into_iter().find(|time| *time > 0).unwrap_or(now);
        let date = |out: &mut JsonOutput<'_>| date::write(time, self.date_format, out);
        let pod = |out: &mut JsonOutput<'_>| kubernetes::write_pod(resource, self.dedot, out);
        let others = |out: &mut JsonOutput<'_>| kubernetes::write_others(resource, self.dedot, out);
        let attributes = record.attributes();
        let others_of_record = || attributes.iter().filter(|pair| !is_own_attribute(pair.key()));
        let nested = |out: &mut JsonOutput<'_>| {
            FieldList::write_object(out, self.dedot, 1, |fields| fields.attributes(others_of_record()));
        };
        FieldList::write_object(out, self.dedot, 0, |fields| {
            if let Some(key) = &self.date_key {
                fields.field("", key.as_bytes(), FieldValue::Written(&date));
            }
            fields.time("time", time);
            fields.text("stream", attributes.text(STREAM_ATTRIBUTE).unwrap_or_default());
            fields.text("level", level(record));
            fields.hex("trace_id", record.trace_id());
            fields.hex("span_id", record.span_id());
            let original = attributes.text(ORIGINAL_ATTRIBUTE).unwrap_or_default();
            fields.text(ORIGINAL_KEY, original);
            let is_taken = self.body_key == ORIGINAL_KEY && !original.is_empty();
            let body_key = if is_taken { OTHER_BODY_KEY } else { self.body_key.as_bytes() };
            fields.field("", body_key, FieldValue::Body(*record));
            if kubernetes::has_pod(resource) {
                fields.field("", b"kubernetes", FieldValue::Written(&pod));
            }
            if kubernetes::has_others(resource) {
                fields.field("", b"resource", FieldValue::Written(&others));
            }
            if self.merge_attributes {
                fields.next_rank();
                fields.attributes(others_of_record());
            } else if others_of_record().next().is_some() {
                fields.field("", b"attributes", FieldValue::Written(&nested));
            }
        });
    }
}

fn is_own_attribute(key: &[u8]) -> bool {
    key == STREAM_ATTRIBUTE || key == ORIGINAL_ATTRIBUTE
}

/// The severity as the source named it, or else by its number.
fn level<'r>(record: &LogRecord<'r>) -> &'r [u8] {
    match (record.severity_text(), record.severity_number()) {
        (b"", 1..=4) => b"trace",
        (b"", 5..=8) => b"debug",
        (b"", 9..=12) => b"info",
        (b"", 13..=16) => b"warn",
        (b"", 17..=20) => b"error",
        (b"", 21..=24) => b"fatal",
        (text, _) => text,
    }
}
