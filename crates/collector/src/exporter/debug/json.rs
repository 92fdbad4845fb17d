//! One JSON object for each record: the record as OTLP's JSON encoding has it, with its `resource` and its `scope`
//! beside its fields.

use kubewake_otlp::{
    Signal,
    json::{EncodeError, Record, encode_record},
    view::{ResourceEntry, ScopeEntry, View},
};

use super::{Output, lines::Records, resources};
use crate::core::{Batch, SendError, WorkMemory};

/// How often a resource and a scope may be written, in bytes of all their copies in a batch. They stand before each record, so
/// that a large one with many small records would never come to an end.
const MAX_COPIED_BYTES: usize = 256 << 20;

/// Shows the objects of all records in a batch, one a line.
pub(super) fn show(batch: &Batch, output: &dyn Output, memory: WorkMemory<'_>) -> Result<(), SendError> {
    let mut out = Records::new(output, memory);
    let mut copied = 0;
    for entry in resources(batch) {
        for scope in entry.scopes() {
            let head = head(&entry, &scope, &mut out)?;
            let mut line = |kind: Record, record: &[u8]| {
                copied += head.len();
                if copied > MAX_COPIED_BYTES {
                    return Err(SendError::malformed(
                        "the resources of the batch are too large to be shown with each record",
                    ));
                }
                line(kind, record, &head, &mut out)
            };
            match batch.signal() {
                Signal::Traces => scope.spans().try_for_each(|r| line(Record::Span, r.as_bytes())),
                Signal::Logs => scope.log_records().try_for_each(|r| line(Record::LogRecord, r.as_bytes())),
                Signal::Metrics => scope.metrics().try_for_each(|r| line(Record::Metric, r.as_bytes())),
            }?;
        }
    }
    out.finish()
}

/// What is the same before each record of a scope.
fn head(entry: &ResourceEntry<'_>, scope: &ScopeEntry<'_>, out: &mut Records<'_>) -> Result<Vec<u8>, SendError> {
    let (resource, scope) = (entry.resource(), scope.scope());
    out.ask_for(resource.as_bytes(), &[])?;
    out.ask_for(scope.as_bytes(), &[])?;
    let mut head = br#"{"resource":"#.to_vec();
    encode_record(Record::Resource, resource.as_bytes(), &mut head).map_err(|error| unreadable(&error))?;
    head.extend_from_slice(br#","scope":"#);
    encode_record(Record::Scope, scope.as_bytes(), &mut head).map_err(|error| unreadable(&error))?;
    Ok(head)
}

fn line(kind: Record, record: &[u8], head: &[u8], out: &mut Records<'_>) -> Result<(), SendError> {
    out.ask_for(record, head)?;
    out.bytes.extend_from_slice(head);
    let brace = out.bytes.len();
    encode_record(kind, record, &mut out.bytes).map_err(|error| unreadable(&error))?;
    if out.bytes.len() - brace == b"{}".len() {
        // A record without fields has nothing to set off.
        out.bytes.remove(brace);
    } else if let Some(byte) = out.bytes.get_mut(brace) {
        *byte = b',';
    }
    out.end_line()
}

fn unreadable(error: &EncodeError) -> SendError {
    SendError::malformed(format!("cannot be shown as JSON: {error}"))
}
