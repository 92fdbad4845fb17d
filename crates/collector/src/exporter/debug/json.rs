//! The `json` format: one object for each record, in OTLP's JSON encoding, with its `resource` and its `scope`
//! added to the record's fields.

use kubewake_otlp::{
    Signal,
    json::{EncodeError, RecordKind, encode_record},
    view::{MessageView, ResourceEntry, ScopeEntry},
};

use super::{DebugOutput, resources, text_output::JsonLines};
use crate::core::{Batch, SendError, WorkMemory};

/// Limit of the copies of resources and scopes in a batch. They precede each record, so that a large resource
/// with many small records would never come to an end.
const MAX_COPIED_BYTES: usize = 256 << 20;

/// Writes the objects of all records in a batch, one a line.
pub(super) fn write_batch(batch: &Batch, output: &dyn DebugOutput, memory: WorkMemory<'_>) -> Result<(), SendError> {
    let mut out = JsonLines::new(output, memory);
    let mut copied = 0;
    for entry in resources(batch) {
        for scope in entry.scopes() {
            let head = record_prefix(&entry, &scope, &mut out)?;
            let mut line = |kind: RecordKind, record: &[u8]| {
                copied += head.len();
                if copied > MAX_COPIED_BYTES {
                    return Err(SendError::malformed(
                        "the resources of the batch are too large to be shown with each record",
                    ));
                }
                write_record(kind, record, &head, &mut out)
            };
            match batch.signal() {
                Signal::Traces => scope.spans().try_for_each(|r| line(RecordKind::Span, r.as_bytes())),
                Signal::Logs => scope.log_records().try_for_each(|r| line(RecordKind::LogRecord, r.as_bytes())),
                Signal::Metrics => scope.metrics().try_for_each(|r| line(RecordKind::Metric, r.as_bytes())),
            }?;
        }
    }
    out.finish()
}

/// The text that precedes each record of a scope.
fn record_prefix(
    entry: &ResourceEntry<'_>,
    scope: &ScopeEntry<'_>,
    out: &mut JsonLines<'_>,
) -> Result<Vec<u8>, SendError> {
    let resource = entry.resource();
    let scope = scope.scope();
    out.reserve_for_message(resource.as_bytes(), &[])?;
    out.reserve_for_message(scope.as_bytes(), &[])?;
    let mut head = br#"{"resource":"#.to_vec();
    encode_record(RecordKind::Resource, resource.as_bytes(), &mut head).map_err(|error| unreadable(&error))?;
    head.extend_from_slice(br#","scope":"#);
    encode_record(RecordKind::Scope, scope.as_bytes(), &mut head).map_err(|error| unreadable(&error))?;
    Ok(head)
}

fn write_record(kind: RecordKind, record: &[u8], head: &[u8], out: &mut JsonLines<'_>) -> Result<(), SendError> {
    out.reserve_for_message(record, head)?;
    out.bytes.extend_from_slice(head);
    let brace = out.bytes.len();
    encode_record(kind, record, &mut out.bytes).map_err(|error| unreadable(&error))?;
    if out.bytes.len() - brace == b"{}".len() {
        // A record without fields needs no separator.
        out.bytes.remove(brace);
    } else if let Some(byte) = out.bytes.get_mut(brace) {
        *byte = b',';
    }
    out.end_line()
}

fn unreadable(error: &EncodeError) -> SendError {
    SendError::malformed(format!("failed to encode the batch as JSON: {error}"))
}
