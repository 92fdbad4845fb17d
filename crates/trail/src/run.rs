//! A record of what a piece of work did, so that its spans are kept only when it did something.
//!
//! A [`Run`] is a reconcile, or one helper call inside it. It is found through the OpenTelemetry [`Context`],
//! which follows the work. Its spans are held until it is settled. They are kept when the run changed something
//! or failed, or when a context left the process with the `sampled` flag (its receiver has spans below ours,
//! which would be orphans). Otherwise they are dropped. A run inside another one hands its spans to the outer
//! run, which decides again.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use opentelemetry::Context;
use opentelemetry_sdk::trace::SpanData;

pub(crate) mod step;

/// Spans of one run that are held until it is settled. Nobody reads a trace with more in one step; later ones
/// are dropped.
const MAX_HELD_SPANS: usize = 512;
/// The length limit of an error message in a span.
const MAX_MESSAGE_BYTES: usize = 1024;

/// A piece of work and its effects. Clones share their state.
#[derive(Clone, Debug)]
pub struct Run(Arc<RunInner>);

#[derive(Debug)]
struct RunInner {
    held: Mutex<HeldSpans>,
    outer: Option<Run>,
    /// A hash of the object and its generation.
    generation_hash: u64,
    /// Writes that changed something.
    writes: AtomicU32,
    /// A hash of the last call that failed.
    last_refused_call: AtomicU64,
    /// The problem of the object: a type and a message.
    failure: Mutex<Option<(&'static str, String)>>,
    changed: AtomicBool,
    exposed: AtomicBool,
    /// Whether no change is expected.
    expects_no_change: AtomicBool,
}

#[derive(Debug)]
enum HeldSpans {
    /// The run is not settled.
    Spans(Vec<SpanData>),
    Kept,
    Discarded,
}

impl Run {
    /// The run of the current context.
    #[must_use]
    pub fn current() -> Option<Self> {
        Context::map_current(|context| context.get::<Self>().cloned())
    }

    /// Records a change that no traced client saw, such as one at a cloud provider or in a database.
    pub fn note_change(&self) {
        self.0.changed.store(true, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.note_change();
        }
    }

    /// Records that the object cannot become ready although the reconciler has done all it can and returns no
    /// error, such as for an invalid specification. The span of the run gets this error. The run is recorded
    /// only if it also changes something, such as a status with the same message.
    pub fn note_failure(&self, kind: &'static str, message: &str) {
        match &self.0.outer {
            Some(outer) => outer.note_failure(kind, message),
            None => {
                let text = message.get(..message.floor_char_boundary(MAX_MESSAGE_BYTES)).unwrap_or_default().to_owned();
                *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some((kind, text));
            }
        }
    }

    /// The recorded problem of the object.
    pub(crate) fn failure(&self) -> Option<(&'static str, String)> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates a run for an object and generation, given as a hash.
    pub(crate) fn new(about: u64) -> Self {
        Self::with_outer(None, about, false)
    }

    /// Creates a run inside another one.
    pub(crate) fn inside(outer: &Self) -> Self {
        Self::with_outer(Some(outer.clone()), outer.generation_hash(), outer.is_quiet())
    }

    fn with_outer(outer: Option<Self>, about: u64, quiet: bool) -> Self {
        Self(Arc::new(RunInner {
            held: Mutex::new(HeldSpans::Spans(Vec::new())),
            outer,
            generation_hash: about,
            writes: AtomicU32::new(0),
            last_refused_call: AtomicU64::new(0),
            failure: Mutex::default(),
            changed: AtomicBool::new(false),
            exposed: AtomicBool::new(false),
            expects_no_change: AtomicBool::new(quiet),
        }))
    }

    /// Records a write that changed something.
    pub(crate) fn note_write(&self) {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        self.0.changed.store(true, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.note_write();
        }
    }

    /// Records a failed call.
    pub(crate) fn note_refused(&self, call: u64) {
        self.0.last_refused_call.store(call, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.note_refused(call);
        }
    }

    /// The hash of the last failed call; 0 if none failed.
    pub(crate) fn last_refused_call(&self) -> u64 {
        self.0.last_refused_call.load(Ordering::Relaxed)
    }

    pub(crate) fn generation_hash(&self) -> u64 {
        self.0.generation_hash
    }

    /// Records that a context left the process with the `sampled` flag.
    pub(crate) fn note_exposed(&self) {
        self.0.exposed.store(true, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.note_exposed();
        }
    }

    pub(crate) fn writes(&self) -> u32 {
        self.0.writes.load(Ordering::Relaxed)
    }

    pub(crate) fn has_changed(&self) -> bool {
        self.0.changed.load(Ordering::Relaxed)
    }

    /// Whether this run or an outer one has changed or exposed something, so that it will be kept.
    pub(crate) fn will_be_kept(&self) -> bool {
        self.has_changed() || self.is_exposed() || self.0.outer.as_ref().is_some_and(Self::will_be_kept)
    }

    /// Whether the run is settled and kept.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(*self.held(), HeldSpans::Kept)
    }

    pub(crate) fn is_exposed(&self) -> bool {
        self.0.exposed.load(Ordering::Relaxed)
    }

    /// Marks the run as one in which no change is expected, such as of an object that was ready at the start.
    pub(crate) fn expect_nothing(&self) {
        self.0.expects_no_change.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.0.expects_no_change.load(Ordering::Relaxed)
    }

    /// Holds an ended span, or returns it if it is to be exported now.
    pub(crate) fn hold_span(&self, span: SpanData) -> Option<SpanData> {
        let span = {
            let mut held = self.held();
            match &mut *held {
                HeldSpans::Discarded => return None,
                HeldSpans::Kept => span,
                HeldSpans::Spans(spans) if spans.len() < MAX_HELD_SPANS => {
                    spans.push(span);
                    return None;
                }
                // A dropped span may be the parent of others; that is better than unbounded memory.
                HeldSpans::Spans(_) => return None,
            }
        };
        match &self.0.outer {
            Some(outer) => outer.hold_span(span),
            None => Some(span),
        }
    }

    /// Settles the run and returns the spans that are to be exported now.
    pub(crate) fn settle(&self, keep: bool) -> Vec<SpanData> {
        let next = if keep { HeldSpans::Kept } else { HeldSpans::Discarded };
        let HeldSpans::Spans(spans) = std::mem::replace(&mut *self.held(), next) else { return Vec::new() };
        if !keep {
            return Vec::new();
        }
        let Some(outer) = &self.0.outer else { return spans };
        spans.into_iter().filter_map(|span| outer.hold_span(span)).collect()
    }

    fn held(&self) -> MutexGuard<'_, HeldSpans> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
