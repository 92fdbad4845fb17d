//! Joins the lines of stack traces, for each stream apart.

use super::held_trace::HeldTrace;
use super::{ContainerLogDecoder, empty_record};
use crate::record::{LineRecord, OutputStream, RecordSink};
use crate::stack_trace::TraceState;

impl ContainerLogDecoder {
    /// Joins the line to the trace of its stream. If it does not continue it, the trace has ended.
    pub(super) fn put_trace_line<S: RecordSink>(&mut self, record: LineRecord<'_>, sink: &mut S) {
        let max_record_bytes = self.settings.max_record_bytes;
        let trace = self.held_trace(record.stream);
        if trace.state.is_some() {
            if trace.join(&record) {
                if trace.record.text.len() >= max_record_bytes {
                    self.counts.split_records += 1;
                    self.put_trace(record.stream, record.observed, sink);
                }
                return;
            }
            self.release_trace(record.stream, record.observed, sink);
        }
        match TraceState::begin(record.body) {
            Some(state) => self.held_trace(record.stream).hold(&record, state),
            None => self.hand_on(record, sink),
        }
    }

    /// Ends the trace of a stream, and hands it on with an empty line behind it.
    pub(super) fn release_trace<S: RecordSink>(&mut self, stream: Option<OutputStream>, observed: u64, sink: &mut S) {
        self.put_trace(stream, observed, sink);
        let trace = self.held_trace(stream);
        trace.state = None;
        if let Some(blank) = trace.blank.take() {
            self.hand_on(LineRecord { time: blank.time, ..empty_record(blank.start, observed, stream) }, sink);
        }
    }

    /// Hands on the lines of a trace so far. Further ones are another record.
    fn put_trace<S: RecordSink>(&mut self, stream: Option<OutputStream>, observed: u64, sink: &mut S) {
        let mut open = std::mem::take(&mut self.held_trace(stream).record);
        if let Some(start) = open.start {
            let record = LineRecord {
                time: open.time,
                tags: &open.tags,
                docker_attributes: &open.docker_attributes,
                body: &open.text,
                ..empty_record(start, observed, stream)
            };
            self.hand_on(record, sink);
        }
        open.clear();
        self.held_trace(stream).record = open;
    }

    pub(super) fn held_trace(&mut self, stream: Option<OutputStream>) -> &mut HeldTrace {
        match stream {
            Some(OutputStream::Stdout) => &mut self.stdout_trace,
            Some(OutputStream::Stderr) => &mut self.stderr_trace,
            None => &mut self.other_trace,
        }
    }
}
