//! The outputs of a receiver: the exporters and connectors of the pipelines that it feeds.
//!
//! *Guarantees*: an output has no more in flight than its window and one request. An output that returned a request is
//! detached: it is given nothing until all of its requests have ended and a pause is over.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use kubewake_config::{ComponentId, PipelineId};
use kubewake_log_files::{OutputId, OutputSet};

use super::log_reader::unix_nanoseconds;
use crate::core::{Pipeline, ReceiptOutput};

/// Bytes of OTLP that an output may have in flight. A backend that hangs costs as much memory.
const MAX_WINDOW_BYTES: u64 = 8 << 20;

/// The part of the memory of a pipeline that each of its outputs may have in flight: a quarter.
const WINDOW_MEMORY_DIVISOR: u64 = 4;

/// The pause before an output gets again what it has returned. It doubles with each return in a row.
const MIN_RESUME_PAUSE: Duration = Duration::from_millis(100);
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(10);

/// Identifies an output as long as the process lives, while its [`OutputId`] changes with the pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct OutputKey(pub(super) u64);

#[derive(Debug)]
pub(super) struct FileLogOutput {
    pub(super) key: OutputKey,
    pub(super) pipeline: PipelineId,
    /// The entry of its pipeline, by which a pipeline is told from a later one of the same id.
    entry: Weak<Pipeline>,
    pub(super) receipt: Arc<ReceiptOutput>,
    /// The epoch of its requests.
    pub(super) epoch: u64,
    requests: u64,
    bytes: u64,
    window: u64,
    /// Set while it is detached: when it may continue.
    resume_at: Option<Instant>,
    returns_in_a_row: u32,
    /// The time of the last record that it has dealt with, or when it began, in nanoseconds since 1970.
    settled_until: u64,
    lost_bytes: u64,
    returned_requests: u64,
}

impl FileLogOutput {
    /// The name of its positions in the state directory.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.pipeline, self.receipt.exporter)
    }

    fn is_of(&self, pipeline: &Arc<Pipeline>, exporter: &ComponentId) -> bool {
        std::ptr::eq(self.entry.as_ptr(), Arc::as_ptr(pipeline)) && self.receipt.exporter == *exporter
    }

    pub(super) fn is_detached(&self) -> bool {
        self.resume_at.is_some()
    }

    /// Whether it gets nothing more until some of its requests have ended.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.window
    }

    /// Whether enough has ended for a full output to continue.
    pub(super) fn has_room(&self) -> bool {
        self.bytes <= self.window / 2
    }

    pub(super) fn begin_request(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }

    pub(super) fn end_request(&mut self, bytes: u64) {
        self.requests = self.requests.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Notes that it has dealt with a request whose last record has this time.
    pub(super) fn note_settled(&mut self, last_time: u64) {
        self.settled_until = self.settled_until.max(last_time.min(unix_nanoseconds()));
        if !self.is_detached() {
            self.returns_in_a_row = 0;
        }
    }

    pub(super) fn note_returned(&mut self) {
        self.returned_requests += 1;
    }

    pub(super) fn note_lost(&mut self, bytes: u64) {
        self.lost_bytes += bytes;
    }

    pub(super) fn settled_until(&self) -> u64 {
        self.settled_until
    }

    pub(super) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    pub(super) fn returned_requests(&self) -> u64 {
        self.returned_requests
    }

    /// It gets nothing until its requests have ended and a pause is over. False if it was detached already.
    pub(super) fn detach(&mut self, now: Instant) -> bool {
        if self.is_detached() {
            return false;
        }
        let pause = MIN_RESUME_PAUSE.saturating_mul(1 << self.returns_in_a_row.min(10)).min(MAX_RESUME_PAUSE);
        self.returns_in_a_row = self.returns_in_a_row.saturating_add(1);
        self.resume_at = Some(now + pause);
        true
    }

    /// When it may continue, if only time is missing.
    pub(super) fn resume_due(&self) -> Option<Instant> {
        self.resume_at.filter(|_| self.requests == 0)
    }

    /// Ends the detachment, in a new epoch.
    pub(super) fn resume(&mut self) {
        self.resume_at = None;
        self.epoch = self.receipt.epoch();
    }
}

#[derive(Debug)]
struct SeenPipeline {
    entry: Weak<Pipeline>,
    outputs: Arc<Vec<ComponentId>>,
}

/// The outputs in the order of their [`OutputId`]s.
#[derive(Debug, Default)]
pub(super) struct OutputTable {
    outputs: Vec<FileLogOutput>,
    next_key: u64,
    /// The pipelines when they were last looked at.
    seen: Vec<SeenPipeline>,
}

impl OutputTable {
    /// Whether the pipelines and their ends are still those that were seen last.
    pub(super) fn is_current(&self, pipelines: &[Arc<Pipeline>]) -> bool {
        let is_same = |(pipeline, seen): (&Arc<Pipeline>, &SeenPipeline)| {
            std::ptr::eq(seen.entry.as_ptr(), Arc::as_ptr(pipeline)) && Arc::ptr_eq(&seen.outputs, &pipeline.outputs())
        };
        pipelines.len() == self.seen.len() && pipelines.iter().zip(&self.seen).all(is_same)
    }

    /// Takes the outputs of these pipelines, keeps those that were there already, and returns those that have gone.
    pub(super) fn replace(&mut self, pipelines: &[Arc<Pipeline>]) -> Vec<OutputKey> {
        let mut old = std::mem::take(&mut self.outputs);
        let seen =
            |pipeline: &Arc<Pipeline>| SeenPipeline { entry: Arc::downgrade(pipeline), outputs: pipeline.outputs() };
        self.seen = pipelines.iter().map(seen).collect();
        for pipeline in pipelines {
            let ends = pipeline.outputs();
            for exporter in ends.iter() {
                let known = old.iter().position(|output| output.is_of(pipeline, exporter));
                let mut output = match known {
                    Some(at) => old.swap_remove(at),
                    None => self.new_output(pipeline, exporter),
                };
                output.window = window_bytes(pipeline, ends.len());
                self.outputs.push(output);
            }
        }
        old.into_iter().map(|gone| gone.key).collect()
    }

    fn new_output(&mut self, pipeline: &Arc<Pipeline>, exporter: &ComponentId) -> FileLogOutput {
        let key = OutputKey(self.next_key);
        self.next_key += 1;
        FileLogOutput {
            key,
            pipeline: pipeline.id().clone(),
            entry: Arc::downgrade(pipeline),
            receipt: ReceiptOutput::new(pipeline.id().clone(), exporter.clone(), key.0),
            epoch: 0,
            requests: 0,
            bytes: 0,
            window: MAX_WINDOW_BYTES,
            resume_at: None,
            returns_in_a_row: 0,
            settled_until: unix_nanoseconds(),
            lost_bytes: 0,
            returned_requests: 0,
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.outputs.iter().map(FileLogOutput::name).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (OutputId, &FileLogOutput)> {
        self.outputs.iter().enumerate().map(|(at, output)| (output_id(at), output))
    }

    pub(super) fn get(&self, id: OutputId) -> Option<&FileLogOutput> {
        self.outputs.get(usize::from(id.0))
    }

    pub(super) fn get_mut(&mut self, id: OutputId) -> Option<&mut FileLogOutput> {
        self.outputs.get_mut(usize::from(id.0))
    }

    pub(super) fn find(&self, key: OutputKey) -> Option<OutputId> {
        self.outputs.iter().position(|output| output.key == key).map(output_id)
    }

    /// The outputs of a set that belong to this pipeline.
    pub(super) fn of_pipeline(&self, set: OutputSet, pipeline: &Arc<Pipeline>) -> Vec<(OutputId, &FileLogOutput)> {
        let is_its = |output: &FileLogOutput| std::ptr::eq(output.entry.as_ptr(), Arc::as_ptr(pipeline));
        self.iter().filter(|(id, output)| set.contains(*id) && is_its(output)).collect()
    }
}

fn output_id(at: usize) -> OutputId {
    // `LogFiles` refuses more outputs than there are numbers.
    OutputId(u8::try_from(at).unwrap_or(u8::MAX))
}

fn window_bytes(pipeline: &Pipeline, outputs: usize) -> u64 {
    let (_, limit) = pipeline.member().usage();
    let share = limit / WINDOW_MEMORY_DIVISOR / (outputs as u64).max(1);
    MAX_WINDOW_BYTES.min(share).max(1)
}
