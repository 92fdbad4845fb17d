//! Equal records of one request, whose ids differ by their order alone.
//!
//! The rest of a request that is sent again must give each of them the same id as before. If only the second of two
//! were in it, it would get the id of the first one, and the destination would take it for the first. Equal records
//! are therefore sent again together; those that are stored are stored once.

use std::collections::HashMap;

use kubewake_otlp::{Allowance, view::resources};

use super::document_id::{BYTES_PER_ID, IdMaker};
use crate::core::{Batch, Part, RecordOutcome, RecordOutcomes, WorkMemory};

/// Makes records unsent if one that is equal to them is unsent.
pub(super) fn keep_together(batch: &Batch, mut outcomes: RecordOutcomes) -> RecordOutcomes {
    let mut first = 0;
    for part in batch.parts() {
        let records = first..first + part.items;
        first = records.end;
        let unsent = records.clone().filter(|record| outcomes.get(*record) == RecordOutcome::Unsent).count();
        if unsent == 0 || unsent == part.items {
            continue;
        }
        let mut memory = WorkMemory::new(&part.charge);
        if memory.reserve(part.items.saturating_mul(2 * BYTES_PER_ID)) {
            for (record, earlier) in equal_records(part, records.start) {
                if outcomes.get(record) == RecordOutcome::Unsent {
                    outcomes.set(earlier, RecordOutcome::Unsent);
                }
            }
            for (record, earlier) in equal_records(part, records.start) {
                if outcomes.get(earlier) == RecordOutcome::Unsent {
                    outcomes.set(record, RecordOutcome::Unsent);
                }
            }
        } else {
            records.for_each(|record| outcomes.set(record, RecordOutcome::Unsent));
        }
    }
    outcomes
}

/// Records that are equal to an earlier one, each with the first that it is equal to.
fn equal_records(part: &Part, first: usize) -> Vec<(usize, usize)> {
    let mut ids = IdMaker::with_content();
    let mut earliest = HashMap::new();
    let mut equal = Vec::new();
    let mut number = first;
    for resource in resources(&part.bytes) {
        ids.begin_resource(resource.resource());
        for record in resource.scopes().flat_map(|scope| scope.log_records()) {
            if let Some(content) = ids.content(record) {
                let earlier = *earliest.entry(content).or_insert(number);
                if earlier != number {
                    equal.push((number, earlier));
                }
            }
            number += 1;
        }
    }
    equal
}
