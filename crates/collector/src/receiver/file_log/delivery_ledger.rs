//! Which ranges of the logs each output was given, and which of them it has dealt with.
//!
//! *Guarantees*: the committed position of an output in a log never passes a byte that the output has not dealt
//! with, and never moves back. What an output has dealt with behind its committed position is not read again by it,
//! as long as the process lives.
//!
//! *Assumes*: an output is given every byte of a log once, in ranges that end where lines end. Ranges of one output and
//! log do not overlap, except where lines of two streams of a container are interleaved.

use std::collections::HashMap;

use kubewake_log_files::{LogPosition, StreamId};

use super::output_table::OutputKey;

/// A half-open range of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRange {
    pub(super) from: LogPosition,
    pub(super) to: LogPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeState {
    InFlight(u64),
    Settled,
}

#[derive(Clone, Copy, Debug)]
struct GivenRange {
    range: LogRange,
    state: RangeState,
}

/// What one output was given of one log.
#[derive(Debug)]
struct OutputLog {
    committed: LogPosition,
    /// Ranges behind the committed position, by their beginning.
    given: Vec<GivenRange>,
}

/// Where an output continues in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResumePoint {
    pub(super) position: LogPosition,
    /// What it has dealt with, or is dealing with, behind that position.
    pub(super) skips: Vec<LogRange>,
}

/// The ledger of all outputs and logs of a receiver.
#[derive(Debug, Default)]
pub(super) struct DeliveryLedger {
    logs: HashMap<(OutputKey, StreamId), OutputLog>,
}

impl DeliveryLedger {
    /// Begins with a log at the position that the output has committed. What is known already stays.
    pub(super) fn open(&mut self, output: OutputKey, stream: StreamId, committed: LogPosition) {
        self.logs.entry((output, stream)).or_insert_with(|| OutputLog { committed, given: Vec::new() });
    }

    /// Notes that the output is given a range with a request.
    pub(super) fn give(&mut self, output: OutputKey, stream: StreamId, range: LogRange, request: u64) {
        self.insert(output, stream, range, RangeState::InFlight(request));
    }

    /// Notes that there is nothing to deliver in a range. Returns the committed position if it has moved.
    pub(super) fn pass(&mut self, output: OutputKey, stream: StreamId, range: LogRange) -> Option<LogPosition> {
        self.insert(output, stream, range, RangeState::Settled);
        self.commit(output, stream)
    }

    /// Notes that the output has dealt with a request. Returns the committed position if it has moved.
    pub(super) fn settle(&mut self, output: OutputKey, stream: StreamId, request: u64) -> Option<LogPosition> {
        let log = self.logs.get_mut(&(output, stream))?;
        let given = log.given.iter_mut().find(|given| given.state == RangeState::InFlight(request))?;
        given.state = RangeState::Settled;
        self.commit(output, stream)
    }

    /// Notes that a request was returned: its range is to be read again.
    pub(super) fn take_back(&mut self, output: OutputKey, stream: StreamId, request: u64) {
        if let Some(log) = self.logs.get_mut(&(output, stream)) {
            log.given.retain(|given| given.state != RangeState::InFlight(request));
        }
    }

    /// Where the output continues: at the first byte that it was not given.
    pub(super) fn resume_point(&self, output: OutputKey, stream: StreamId) -> Option<ResumePoint> {
        let log = self.logs.get(&(output, stream))?;
        let mut position = log.committed;
        let mut ranges = log.given.iter().map(|given| given.range).peekable();
        while let Some(next) = ranges.next_if(|range| range.from <= position) {
            position = position.max(next.to);
        }
        Some(ResumePoint { position, skips: ranges.collect() })
    }

    /// Forgets all other logs.
    pub(super) fn retain_streams(&mut self, is_known: impl Fn(StreamId) -> bool) {
        self.logs.retain(|(_, stream), _| is_known(*stream));
    }

    pub(super) fn forget_output(&mut self, output: OutputKey) {
        self.logs.retain(|(other, _), _| *other != output);
    }

    fn insert(&mut self, output: OutputKey, stream: StreamId, range: LogRange, state: RangeState) {
        let Some(log) = self.logs.get_mut(&(output, stream)) else { return };
        let place = log.given.partition_point(|given| given.range.from <= range.from);
        log.given.insert(place, GivenRange { range, state });
    }

    fn commit(&mut self, output: OutputKey, stream: StreamId) -> Option<LogPosition> {
        let log = self.logs.get_mut(&(output, stream))?;
        let before = log.committed;
        let reaches = |committed: LogPosition, given: &GivenRange| {
            given.state == RangeState::Settled && given.range.from <= committed
        };
        let mut done = 0;
        for given in &log.given {
            if !reaches(log.committed, given) {
                break;
            }
            log.committed = log.committed.max(given.range.to);
            done += 1;
        }
        log.given.drain(..done);
        (log.committed > before).then_some(log.committed)
    }
}

#[cfg(test)]
mod tests;
