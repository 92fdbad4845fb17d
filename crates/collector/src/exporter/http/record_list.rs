//! The records of a batch, in their order.

use kubewake_otlp::{
    Allowance, NoMemory,
    view::{MessageView, resources},
};

use crate::{
    core::{Batch, Charge, RecordOutcomes, SendError, WorkMemory},
    exporter::log_source::{LogSource, SourceBytes, push},
};

/// Memory for the list of a small batch that is granted when the pipeline has none, so that full queues empty
/// themselves.
const UNCHARGED_BYTES: u64 = 16 << 10;

pub(super) struct RecordList {
    pub(super) batch: Batch,
    pub(super) sources: SourceBytes,
    pub(super) records: Vec<ListedRecord>,
    /// The time of records without one, in nanoseconds since 1970.
    pub(super) now: u64,
    /// The memory of the list, and of the outcomes of its records.
    _charge: Option<Charge>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ListedRecord {
    /// The number of the record in the batch.
    pub(super) number: u32,
    pub(super) source: LogSource,
}

impl RecordList {
    /// Lists the records of a batch. `now` is the time of records without one, in nanoseconds since 1970.
    pub(super) fn make(batch: Batch, now: u64) -> Result<Self, SendError> {
        let mut sources = SourceBytes::default();
        let mut records = Vec::new();
        let charge = match WorkMemory::for_delivery(&batch) {
            None => None,
            Some(memory) => {
                let mut memory = memory.with_uncharged(UNCHARGED_BYTES);
                match list(&batch, &mut sources, &mut records, &mut memory) {
                    Ok(()) => memory.into_charge(),
                    Err(NoMemory) => return Err(memory.send_error()),
                }
            }
        };
        Ok(Self { batch, sources, records, now, _charge: charge })
    }
}

fn list(
    batch: &Batch,
    sources: &mut SourceBytes,
    records: &mut Vec<ListedRecord>,
    memory: &mut WorkMemory<'_>,
) -> Result<(), NoMemory> {
    if !memory.reserve(RecordOutcomes::bytes_for(batch.items())) {
        return Err(NoMemory);
    }
    let mut first = 0;
    for (number, part) in batch.parts().iter().enumerate() {
        let mut next_record = first;
        first += part.items;
        for entry in resources(&part.bytes) {
            let mut located = None;
            for record in entry.scopes().flat_map(|scope| scope.log_records()) {
                let resource = match located {
                    Some(resource) => resource,
                    None => sources.locate(number, &part.bytes, entry.resource().as_bytes(), memory)?,
                };
                located = Some(resource);
                let source = LogSource::new(number, &part.bytes, record.as_bytes(), resource, resource);
                let record = ListedRecord { number: u32::try_from(next_record).unwrap_or(u32::MAX), source };
                next_record += 1;
                push(records, record, memory)?;
            }
        }
    }
    Ok(())
}
