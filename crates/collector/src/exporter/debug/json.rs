//! One JSON object for each record: the record as OTLP's JSON encoding has it, with its `resource` and its `scope`
//! beside its fields.

use kubewake_otlp::{
    Signal,
    json::{EncodeError, Record, encode_record},
    view::{ScopeEntry, View},
};

use super::resources;
use crate::core::{Batch, SendError};

/// The objects of all records in a batch, one a line.
pub(super) fn lines(batch: &Batch) -> Result<Vec<u8>, SendError> {
    let mut out = Vec::new();
    write(batch, &mut out).map_err(|error| SendError::malformed(format!("cannot be shown as JSON: {error}")))?;
    Ok(out)
}

fn write(batch: &Batch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    for entry in resources(batch) {
        for scope in entry.scopes() {
            // The same before each record of this scope.
            let mut head = br#"{"resource":"#.to_vec();
            encode_record(Record::Resource, entry.resource().as_bytes(), &mut head)?;
            head.extend_from_slice(br#","scope":"#);
            encode_record(Record::Scope, scope.scope().as_bytes(), &mut head)?;
            records(batch.signal(), &scope, &head, out)?;
        }
    }
    Ok(())
}

fn records(signal: Signal, scope: &ScopeEntry<'_>, head: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match signal {
        Signal::Traces => scope.spans().try_for_each(|r| line(Record::Span, r.as_bytes(), head, out)),
        Signal::Logs => scope.log_records().try_for_each(|r| line(Record::LogRecord, r.as_bytes(), head, out)),
        Signal::Metrics => scope.metrics().try_for_each(|r| line(Record::Metric, r.as_bytes(), head, out)),
    }
}

fn line(kind: Record, record: &[u8], head: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.extend_from_slice(head);
    let brace = out.len();
    encode_record(kind, record, out)?;
    if out.len() - brace == b"{}".len() {
        // A record without fields has nothing to set off.
        out.remove(brace);
    } else if let Some(byte) = out.get_mut(brace) {
        *byte = b',';
    }
    out.push(b'\n');
    Ok(())
}
