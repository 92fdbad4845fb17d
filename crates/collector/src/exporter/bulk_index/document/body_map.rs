//! The mode `bodymap`: the body of a log record is the document.

use kubewake_otlp::view::{AnyValue, LogRecord};

use super::{DocumentWriter, log_time};
use crate::exporter::record_json::{FieldList, FieldValue, JsonOutput};

/// A body that is not a map becomes the member `message`. A document without a time gets that of the record, because
/// data streams refuse it otherwise.
pub(super) fn push_log(record: LogRecord<'_>, writer: &DocumentWriter, out: &mut JsonOutput<'_>) {
    let time = writer.time_or_now(log_time(record));
    FieldList::write_object(out, writer.dedot, 1, |fields| {
        match record.body() {
            AnyValue::KeyValueList(pairs) => fields.attributes(pairs),
            AnyValue::None => {}
            _ => fields.field("", b"message", FieldValue::Body(record)),
        }
        fields.next_rank();
        fields.time("@timestamp", time);
    });
}
