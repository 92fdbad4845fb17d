//! Runs records through the operators.

use kubewake_config::file_log::{OperatorConfig, OperatorGraph, OperatorKind};
use kubewake_log_lines::LinePosition;

use crate::{
    entry::LogEntry,
    operators::{Operator, RecordError, Verdict},
};

/// The operators of a receiver at work on one log.
///
/// *Bounds*: each operator that joins records holds at most 64 MiB and `max_sources` records that are open.
pub struct OperatorChain {
    steps: Vec<OperatorStep>,
    /// Records on their way, and where they go. Kept for its capacity.
    pending: Vec<(usize, LogEntry)>,
}

struct OperatorStep {
    operator: Operator,
    id: String,
    outputs: Vec<usize>,
    /// The outputs of each route of a router.
    routes: Vec<Vec<usize>>,
    drops_failed: bool,
    is_quiet: bool,
    failures: u64,
    dropped: u64,
    first_error: Option<RecordError>,
}

/// What an operator could not process since the last time that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorFailure {
    /// The id of the operator.
    pub operator: String,
    /// The records that it could not process.
    pub failures: u64,
    /// Those of them that were dropped.
    pub dropped: u64,
    /// Why, for the first of them.
    pub error: RecordError,
    /// The settings ask for silence about them.
    pub is_quiet: bool,
}

/// The place of records that leave the chain.
const END: usize = usize::MAX;

impl OperatorChain {
    /// A chain of the operators of the settings.
    pub fn new(graph: &OperatorGraph) -> Self {
        Self { steps: graph.operators.iter().map(OperatorStep::new).collect(), pending: Vec::new() }
    }

    /// Whether records pass unchanged.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs a record through the operators. What leaves the chain is added to `out`.
    pub fn process(&mut self, entry: LogEntry, out: &mut Vec<LogEntry>) {
        let first = if self.steps.is_empty() { END } else { 0 };
        self.pending.push((first, entry));
        self.run(out);
    }

    /// Passes on what has been held for as long as it may be. `now` is in nanoseconds since 1970.
    pub fn flush_due(&mut self, now: u64, out: &mut Vec<LogEntry>) {
        self.flush(out, |operator, joined| {
            if let Some(recombiner) = operator.recombiner_mut() {
                recombiner.flush_due(now, joined);
            }
        });
    }

    /// Passes on all that is held.
    pub fn flush_all(&mut self, out: &mut Vec<LogEntry>) {
        self.flush(out, |operator, joined| {
            if let Some(recombiner) = operator.recombiner_mut() {
                recombiner.flush_all(joined);
            }
        });
    }

    fn flush(&mut self, out: &mut Vec<LogEntry>, mut release: impl FnMut(&mut Operator, &mut Vec<LogEntry>)) {
        // A later operator is flushed again after records of an earlier one have come to it.
        for place in 0..self.steps.len() {
            let mut joined = Vec::new();
            if let Some(step) = self.steps.get_mut(place) {
                release(&mut step.operator, &mut joined);
                for entry in joined.into_iter().rev() {
                    forward(entry, &step.outputs, &mut self.pending);
                }
            }
            self.run(out);
        }
    }

    /// When [`Self::flush_due`] has something to do, in nanoseconds since 1970.
    pub fn next_deadline(&self) -> Option<u64> {
        self.recombiners().filter_map(|recombiner| recombiner.next_deadline()).min()
    }

    /// Where the first line begins of what is held. A reader that begins there again loses nothing.
    pub fn held_since(&self) -> Option<LinePosition> {
        self.recombiners().filter_map(|recombiner| recombiner.held_since()).min()
    }

    /// The bytes that are held, about.
    pub fn held_bytes(&self) -> usize {
        self.recombiners().map(|recombiner| recombiner.held_bytes()).sum()
    }

    fn recombiners(&self) -> impl Iterator<Item = &crate::operators::Recombiner> {
        self.steps.iter().filter_map(|step| step.operator.recombiner())
    }

    /// What the operators could not process since the last call.
    pub fn take_failures(&mut self) -> Vec<OperatorFailure> {
        self.steps.iter_mut().filter_map(OperatorStep::take_failure).collect()
    }

    fn run(&mut self, out: &mut Vec<LogEntry>) {
        let mut joined = Vec::new();
        while let Some((place, entry)) = self.pending.pop() {
            let Some(step) = self.steps.get_mut(place) else {
                out.push(entry);
                continue;
            };
            let verdict = step.operator.process(entry, &mut joined);
            let (entry, route) = match verdict {
                Verdict::Forward(entry) => (Some(entry), None),
                Verdict::Route(entry, route) => (Some(entry), Some(route)),
                Verdict::Fail(entry, error) => (step.fail(entry, error), None),
                Verdict::Drop | Verdict::Taken => (None, None),
            };
            let outputs = match route {
                Some(route) => step.routes.get(route).unwrap_or(&step.outputs),
                None => &step.outputs,
            };
            // The last one that is put here is the first one that is taken again.
            if let Some(entry) = entry {
                forward(entry, outputs, &mut self.pending);
            }
            for entry in joined.drain(..).rev() {
                forward(entry, outputs, &mut self.pending);
            }
        }
    }
}

/// Puts a record on its way to all outputs, the first one last.
fn forward(entry: LogEntry, outputs: &[usize], pending: &mut Vec<(usize, LogEntry)>) {
    let Some((first, others)) = outputs.split_first() else {
        pending.push((END, entry));
        return;
    };
    for output in others.iter().rev() {
        pending.push((*output, entry.clone()));
    }
    pending.push((*first, entry));
}

impl OperatorStep {
    fn new(config: &OperatorConfig) -> Self {
        let routes = match &config.kind {
            OperatorKind::Router { routes } => routes.iter().map(|route| route.outputs.clone()).collect(),
            _ => Vec::new(),
        };
        Self {
            operator: Operator::new(config),
            id: config.id.clone(),
            outputs: config.outputs.clone(),
            routes,
            drops_failed: config.on_error.drops,
            is_quiet: config.on_error.is_quiet,
            failures: 0,
            dropped: 0,
            first_error: None,
        }
    }

    /// Counts a record that could not be processed; returns it if it goes on nevertheless.
    fn fail(&mut self, entry: LogEntry, error: RecordError) -> Option<LogEntry> {
        self.failures += 1;
        self.first_error.get_or_insert(error);
        if self.drops_failed {
            self.dropped += 1;
            return None;
        }
        Some(entry)
    }

    fn take_failure(&mut self) -> Option<OperatorFailure> {
        let error = self.first_error.take()?;
        Some(OperatorFailure {
            operator: self.id.clone(),
            failures: std::mem::take(&mut self.failures),
            dropped: std::mem::take(&mut self.dropped),
            error,
            is_quiet: self.is_quiet,
        })
    }
}
