//! The lines of a stack trace that may go on.

use super::open_record::OpenRecord;
use crate::record::{LinePosition, LineRecord};
use crate::stack_trace::TraceState;

/// How long a trace waits for its next line. Programs write all lines of a trace at once.
const TRACE_WAIT_NANOSECONDS: u64 = 1_000_000_000;

/// The joined lines of a trace of one stream, or one line that may be the head of a trace.
#[derive(Debug, Default)]
pub(super) struct HeldTrace {
    pub(super) record: OpenRecord,
    /// `None` if nothing is held.
    pub(super) state: Option<TraceState>,
    /// An empty line behind it, which belongs to it if the next line does.
    pub(super) blank: Option<BlankLine>,
}

/// An empty line of a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlankLine {
    pub(super) start: LinePosition,
    pub(super) time: u64,
}

impl HeldTrace {
    /// Holds a line that may be the head of a trace.
    pub(super) fn hold(&mut self, line: &LineRecord<'_>, state: TraceState) {
        self.record.begin(line.start, line.time, line.tags);
        self.record.docker_attributes.extend_from_slice(line.docker_attributes);
        self.record.text.extend_from_slice(line.body);
        self.state = Some(state);
        self.record.since = line.observed;
    }

    /// Joins the line if it continues the trace. Returns whether it does.
    pub(super) fn join(&mut self, line: &LineRecord<'_>) -> bool {
        let Some(state) = self.state else { return false };
        if line.body.is_empty() && self.blank.is_none() && state.may_have_blank() {
            self.blank = Some(BlankLine { start: line.start, time: line.time });
            self.record.since = line.observed;
            return true;
        }
        let Some(next) = state.next(line.body) else { return false };
        if self.blank.take().is_some() {
            self.record.text.push(b'\n');
        }
        self.record.begin(line.start, line.time, line.tags);
        if !self.record.text.is_empty() {
            self.record.text.push(b'\n');
        }
        self.record.text.extend_from_slice(line.body);
        self.state = Some(next);
        self.record.since = line.observed;
        true
    }

    /// When the held lines are handed on if no line follows; `None` if nothing is held.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.start().map(|_| self.record.since.saturating_add(TRACE_WAIT_NANOSECONDS))
    }

    /// Where the held lines begin.
    pub(super) fn start(&self) -> Option<LinePosition> {
        self.record.start.or(self.blank.map(|blank| blank.start))
    }
}
