//! Where each record is.

use std::ops::Range;

use super::{ScanError, Summary, Visitor, scan_with};
use crate::Signal;

/// The place of every record of a request. Ordinals count from 0 through the whole request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// What [`scan`](super::scan) says of the request.
    pub summary: Summary,
    /// The spans, log records or metrics in the order in which they stand.
    pub records: Vec<IndexedRecord>,
}

/// The place of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedRecord {
    /// Where the content of its message is, without tag and length.
    pub range: Range<usize>,
    /// Which resource entry it is in.
    pub resource: usize,
    /// Which scope entry it is in, counted through all resources.
    pub scope: usize,
    /// The trace id, of zeroes where the record has none.
    pub trace_id: [u8; 16],
    /// 1, or for a metric the number of its data points.
    pub items: usize,
}

/// Checks a request as [`scan`](super::scan) does, and says where its records are.
pub fn index(signal: Signal, bytes: &[u8]) -> Result<Index, ScanError> {
    let mut indexer = Indexer::default();
    let summary = scan_with(signal, bytes, &mut indexer)?;
    Ok(Index { summary, records: indexer.records })
}

/// Counts one ahead: the entry seen last has the ordinal `resources - 1`.
#[derive(Default)]
struct Indexer {
    resources: usize,
    scopes: usize,
    records: Vec<IndexedRecord>,
}

impl Visitor for Indexer {
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
