//! `recombine`: joins the texts of consecutive records.
//!
//! *Guarantees*: at most [`MAX_HELD_BYTES`] and `max_sources` sources are held; beyond, everything held is passed on.
//! Records of different sources are joined apart, and pass in the order in which they began. Unlike in the Collector a
//! record without the text is not lost.

use std::collections::HashMap;

use kubewake_config::file_log::{RecordField, operator::RecombineConfig};
use kubewake_log_lines::LinePosition;

use super::{RecordError, Verdict};
use crate::{entry::LogEntry, evaluate::is_true, field, value::LogValue};

/// The most bytes of records that one operator holds.
const MAX_HELD_BYTES: usize = 64 << 20;

pub(crate) struct Recombiner {
    config: RecombineConfig,
    sources: HashMap<Vec<u8>, OpenBatch>,
    held_bytes: usize,
    /// The number of the next batch.
    next_batch: u64,
}

/// Records that are being joined.
struct OpenBatch {
    /// The order in which batches began.
    number: u64,
    /// The record that the others are joined to.
    base: LogEntry,
    start: LinePosition,
    text: Vec<u8>,
    records: usize,
    /// When its first record was read.
    since: u64,
    has_boundary: bool,
    /// The bytes of the base.
    base_bytes: usize,
}

/// Whether a record is the first or the last of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    First,
    Last,
    None,
}

impl Recombiner {
    pub(super) fn new(config: RecombineConfig) -> Self {
        Self { config, sources: HashMap::new(), held_bytes: 0, next_batch: 0 }
    }

    pub(super) fn process(&mut self, entry: LogEntry, joined: &mut Vec<LogEntry>) -> Verdict {
        let boundary = match is_true(&self.config.boundary, &entry) {
            Ok(false) => Boundary::None,
            Ok(true) if self.config.boundary_is_first => Boundary::First,
            Ok(true) => Boundary::Last,
            Err(error) => return Verdict::Fail(entry, error),
        };
        let source = field::get_text(&entry, &self.config.source_identifier).unwrap_or_default().to_vec();
        self.join(entry, source, boundary, joined)
    }

    /// Joins a record to those of its source.
    pub(super) fn join(
        &mut self,
        entry: LogEntry,
        source: Vec<u8>,
        boundary: Boundary,
        joined: &mut Vec<LogEntry>,
    ) -> Verdict {
        let Some(text) = field::get_text(&entry, &self.config.combine_field) else {
            let error = missing_text(&self.config.combine_field);
            return Verdict::Fail(entry, error);
        };
        let text = text.to_vec();
        if boundary == Boundary::First {
            self.flush_source(&source, joined);
        }
        self.add(entry, &source, &text, boundary != Boundary::None, joined);
        let is_full = self.sources.get(&source).is_some_and(|batch| self.is_full(batch));
        if boundary == Boundary::Last || is_full {
            self.flush_source(&source, joined);
        }
        if self.held_bytes > MAX_HELD_BYTES {
            self.flush_all(joined);
        }
        Verdict::Taken
    }

    fn add(&mut self, entry: LogEntry, source: &[u8], text: &[u8], has_boundary: bool, joined: &mut Vec<LogEntry>) {
        if !self.sources.contains_key(source) && self.sources.len() >= self.config.max_sources {
            self.flush_all(joined);
        }
        match self.sources.get_mut(source) {
            Some(batch) => {
                batch.records += 1;
                batch.has_boundary |= has_boundary;
                if !batch.text.is_empty() {
                    batch.text.extend_from_slice(self.config.combine_with.as_bytes());
                    self.held_bytes += self.config.combine_with.len();
                }
                batch.text.extend_from_slice(text);
                if self.config.keeps_newest {
                    self.held_bytes = self.held_bytes.saturating_sub(batch.base_bytes);
                    batch.base_bytes = entry.held_bytes();
                    self.held_bytes += batch.base_bytes;
                    batch.base = entry;
                }
            }
            None => {
                let base_bytes = entry.held_bytes();
                let batch = OpenBatch {
                    number: self.next_batch,
                    start: entry.start,
                    text: text.to_vec(),
                    records: 1,
                    since: entry.observed,
                    has_boundary,
                    base_bytes,
                    base: entry,
                };
                self.next_batch += 1;
                self.held_bytes += base_bytes;
                self.sources.insert(source.to_vec(), batch);
            }
        }
        self.held_bytes += text.len();
    }

    fn is_full(&self, batch: &OpenBatch) -> bool {
        let reaches = |most: Option<usize>| most.is_some_and(|most| batch.records >= most);
        batch.text.len() > self.config.max_log_size
            || reaches(self.config.max_batch_size)
            || !batch.has_boundary && reaches(self.config.max_unmatched_batch_size)
    }

    fn flush_source(&mut self, source: &[u8], joined: &mut Vec<LogEntry>) {
        if let Some(batch) = self.sources.remove(source) {
            self.finish(batch, joined);
        }
    }

    fn finish(&mut self, batch: OpenBatch, joined: &mut Vec<LogEntry>) {
        self.held_bytes = self.held_bytes.saturating_sub(batch.base_bytes + batch.text.len());
        let mut entry = batch.base;
        entry.start = batch.start;
        // A text is set to where a text was, which cannot fail.
        if field::set(&mut entry, &self.config.combine_field, LogValue::Text(batch.text)).is_ok() {
            joined.push(entry);
        }
        if self.sources.is_empty() {
            self.held_bytes = 0;
        }
    }

    /// Passes on what is held for as long as it may be.
    pub(crate) fn flush_due(&mut self, now: u64, joined: &mut Vec<LogEntry>) {
        let deadline = |batch: &OpenBatch| self.deadline(batch);
        let mut due: Vec<(u64, Vec<u8>)> = self
            .sources
            .iter()
            .filter(|(_, batch)| deadline(batch) <= now)
            .map(|(source, batch)| (batch.number, source.clone()))
            .collect();
        due.sort_unstable();
        for (_, source) in due {
            self.flush_source(&source, joined);
        }
    }

    fn deadline(&self, batch: &OpenBatch) -> u64 {
        let period = u64::try_from(self.config.force_flush_period.as_nanos()).unwrap_or(u64::MAX);
        batch.since.saturating_add(period)
    }

    /// Passes on all that is held, in the order in which it came.
    pub(crate) fn flush_all(&mut self, joined: &mut Vec<LogEntry>) {
        let mut batches: Vec<OpenBatch> = self.sources.drain().map(|(_, batch)| batch).collect();
        batches.sort_unstable_by_key(|batch| batch.number);
        for batch in batches {
            self.finish(batch, joined);
        }
    }

    /// When something held is due, in nanoseconds since 1970.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.sources.values().map(|batch| self.deadline(batch)).min()
    }

    /// Where the first record begins that is held.
    pub(crate) fn held_since(&self) -> Option<LinePosition> {
        self.sources.values().map(|batch| batch.start).min()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

fn missing_text(field: &RecordField) -> RecordError {
    RecordError::new(format!("the record has no text in `{field}` to join"))
}
