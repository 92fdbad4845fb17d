//! Which ranges of the logs each output was given, and which of them it has dealt with.
//!
//! *Guarantees*: the committed position of an output in a log never passes a byte that the output has not dealt
//! with, and never moves back. What an output has dealt with behind its committed position is not read again by it,
//! as long as the process lives, unless a request before it was returned that holds records from behind its range: then
//! everything from there on is read again, since these records are nowhere else.
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
    /// Whether its request holds records from behind it, because something before them is unfinished.
    holds_more: bool,
}

/// What one output was given of one log.
#[derive(Debug)]
struct OutputLog {
    committed: LogPosition,
    /// Ranges behind the committed position, by their beginning.
    given: Vec<GivenRange>,
    /// From here on everything is read again.
    reread_from: Option<LogPosition>,
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
    /// Begins with a log at the position that the output has committed. What is known already stays: the position that
    /// is returned may be behind the stored one.
    pub(super) fn open(&mut self, output: OutputKey, stream: StreamId, committed: LogPosition) -> LogPosition {
        let new_log = || OutputLog { committed, given: Vec::new(), reread_from: None };
        self.logs.entry((output, stream)).or_insert_with(new_log).committed
    }

    /// Notes that the output is given a range with a request.
    pub(super) fn give(&mut self, output: OutputKey, stream: StreamId, range: LogRange, request: u64) {
        self.insert(output, stream, range, RangeState::InFlight(request));
    }

    /// Notes that a request holds records from behind its range as well.
    pub(super) fn note_more(&mut self, output: OutputKey, stream: StreamId, request: u64) {
        let Some(log) = self.logs.get_mut(&(output, stream)) else { return };
        let its = log.given.iter_mut().filter(|given| given.state == RangeState::InFlight(request));
        its.for_each(|given| given.holds_more = true);
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
        let Some(log) = self.logs.get_mut(&(output, stream)) else { return };
        let is_its = |given: &GivenRange| given.state == RangeState::InFlight(request);
        let more = log.given.iter().filter(|given| is_its(given) && given.holds_more).map(|given| given.range.from);
        log.reread_from = log.reread_from.into_iter().chain(more).min();
        log.given.retain(|given| !is_its(given));
    }

    /// Where the output continues: at the first byte that it was not given, or has to read again. None of its requests
    /// is in flight.
    pub(super) fn resume_point(&mut self, output: OutputKey, stream: StreamId) -> Option<ResumePoint> {
        let log = self.logs.get_mut(&(output, stream))?;
        if let Some(from) = log.reread_from.take() {
            log.given.retain(|given| given.range.from < from);
        }
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
        log.given.insert(place, GivenRange { range, state, holds_more: false });
    }

    fn commit(&mut self, output: OutputKey, stream: StreamId) -> Option<LogPosition> {
        let log = self.logs.get_mut(&(output, stream))?;
        let before = log.committed;
        let reread_from = log.reread_from;
        let reaches = |committed: LogPosition, given: &GivenRange| {
            let is_read_again = reread_from.is_some_and(|from| given.range.from >= from);
            given.state == RangeState::Settled && given.range.from <= committed && !is_read_again
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
