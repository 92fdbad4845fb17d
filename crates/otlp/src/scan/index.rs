//! Indexes the records of a request.

use std::ops::Range;

use super::{ScanError, ScanSummary, ScanVisitor, scan_with};
use crate::Signal;

/// The position of every record of a request. Ordinals count from 0 through the whole request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestIndex {
    /// The result of [`scan`](super::scan).
    pub summary: ScanSummary,
    /// The spans, log records or metrics in their order.
    pub records: Vec<IndexedRecord>,
}

/// The position of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedRecord {
    /// The range of the message's content, without tag and length.
    pub range: Range<usize>,
    /// The ordinal of its resource entry.
    pub resource: usize,
    /// The ordinal of its scope entry, counted through all resources.
    pub scope: usize,
    /// The trace id; all zeroes for a record without one.
    pub trace_id: [u8; 16],
    /// 1, or for a metric the number of its data points.
    pub items: usize,
}

/// Validates a request as [`scan`](super::scan) does, and returns the positions of its records.
pub fn index(signal: Signal, bytes: &[u8]) -> Result<RequestIndex, ScanError> {
    let mut indexer = RecordIndexer::default();
    let summary = scan_with(signal, bytes, &mut indexer)?;
    Ok(RequestIndex { summary, records: indexer.records })
}

/// Counts one ahead: the ordinal of the current entry is `resources - 1`.
#[derive(Default)]
struct RecordIndexer {
    resources: usize,
    scopes: usize,
    records: Vec<IndexedRecord>,
}

impl ScanVisitor for RecordIndexer {
    fn resource(&mut self, _: Range<usize>) {
        self.resources += 1;
    }

    fn scope(&mut self, _: Range<usize>) {
        self.scopes += 1;
    }

    fn record(&mut self, range: Range<usize>, trace_id: &[u8], items: usize) {
        self.records.push(IndexedRecord {
            range,
            resource: self.resources.saturating_sub(1),
            scope: self.scopes.saturating_sub(1),
            trace_id: trace_id.try_into().unwrap_or_default(),
            items,
        });
    }
}
