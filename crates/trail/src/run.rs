//! What a piece of work did, so that its spans are kept only when it did something.
//!
//! A [`Run`] is a reconcile, or one call of a helper inside it. It is found through the OpenTelemetry [`Context`], which follows the work. Its spans are
//! held until it is settled: kept when something was changed, failed, or left the process under the `sampled` flag (whoever got it
//! has spans below ours, which would be orphans); forgotten otherwise.
//! A run inside another hands its spans to that one, which decides again.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use opentelemetry::Context;
use opentelemetry_sdk::trace::SpanData;

/// Spans of one run that wait for it to be settled. Nobody reads a trace with more in one step; later ones are left out.
const MAX_HELD: usize = 512;
/// What an error may take of a span.
const MAX_MESSAGE: usize = 1024;

/// A piece of work and what it did.
#[derive(Clone, Debug)]
pub struct Run(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    held: Mutex<Held>,
    outer: Option<Run>,
    /// The object and the generation that it is for, as a hash.
    about: u64,
    /// Writes that changed something.
    writes: AtomicU32,
    /// The last call that failed, as a hash of what it was.
    refused: AtomicU64,
    /// What is wrong with the object, by kind and in words.
    failure: Mutex<Option<(&'static str, String)>>,
    changed: AtomicBool,
    exposed: AtomicBool,
    /// Nothing is expected to change.
    quiet: AtomicBool,
}

#[derive(Debug)]
enum Held {
    /// Not settled yet.
    Spans(Vec<SpanData>),
    Kept,
    Forgotten,
}

impl Run {
    /// The run that the caller is part of.
    #[must_use]
    pub fn current() -> Option<Self> {
        Context::map_current(|context| context.get::<Self>().cloned())
    }

    /// Says that something was changed which no client of ours saw: at a cloud provider, in a database.
    pub fn note_change(&self) {
        self.0.changed.store(true, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.note_change();
        }
    }

    /// Says that the object cannot become what it asks for, although the reconciler has done what it can and does not fail: a specification that makes no sense. The span of the run is an error with this
    /// message. That the run is recorded takes a change, such as of a status that says the same.
    pub fn note_failure(&self, kind: &'static str, message: &str) {
        match &self.0.outer {
            Some(outer) => outer.note_failure(kind, message),
            None => {
                let text = message.get(..message.floor_char_boundary(MAX_MESSAGE)).unwrap_or_default().to_owned();
                *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some((kind, text));
            }
        }
    }

    /// What was said to be wrong with the object.
    pub(crate) fn failure(&self) -> Option<(&'static str, String)> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A run for an object of this generation, as a hash.
    pub(crate) fn new(about: u64) -> Self {
        Self::with(None, about, false)
    }

    /// A run inside another.
    pub(crate) fn inside(outer: &Self) -> Self {
        Self::with(Some(outer.clone()), outer.about(), outer.is_quiet())
    }

    fn with(outer: Option<Self>, about: u64, quiet: bool) -> Self {
        Self(Arc::new(Inner {
            held: Mutex::new(Held::Spans(Vec::new())),
            outer,
            about,
            writes: AtomicU32::new(0),
            refused: AtomicU64::new(0),
            failure: Mutex::default(),
            changed: AtomicBool::new(false),
            exposed: AtomicBool::new(false),
            quiet: AtomicBool::new(quiet),
        }))
    }

    /// A write changed something.
    pub(crate) fn note_write(&self) {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        self.0.changed.store(true, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.note_write();
        }
    }

    /// A call failed.
    pub(crate) fn note_refused(&self, call: u64) {
        self.0.refused.store(call, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.note_refused(call);
        }
    }

    /// The last call that failed; 0 if none did.
    pub(crate) fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn about(&self) -> u64 {
        self.0.about
    }

    /// The context left the process under the `sampled` flag.
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

    /// Whether this run, or the one around it, has changed something, so that it will be kept anyway.
    pub(crate) fn will_be_kept(&self) -> bool {
        self.has_changed() || self.is_exposed() || self.0.outer.as_ref().is_some_and(Self::will_be_kept)
    }

    /// Whether it is settled that it is kept.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(*self.held(), Held::Kept)
    }

    pub(crate) fn is_exposed(&self) -> bool {
        self.0.exposed.load(Ordering::Relaxed)
    }

    /// Nothing is expected to change: the object was in order when the controller started.
    pub(crate) fn expect_nothing(&self) {
        self.0.quiet.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.0.quiet.load(Ordering::Relaxed)
    }

    /// Takes a span that has ended, and gives it back if it is to be exported now.
    pub(crate) fn take(&self, span: SpanData) -> Option<SpanData> {
        let span = {
            let mut held = self.held();
            match &mut *held {
                Held::Forgotten => return None,
                Held::Kept => span,
                Held::Spans(spans) if spans.len() < MAX_HELD => {
                    spans.push(span);
                    return None;
                }
                // One that is left out may have been the parent of others, which is better than memory without an end.
                Held::Spans(_) => return None,
            }
        };
        match &self.0.outer {
            Some(outer) => outer.take(span),
            None => Some(span),
        }
    }

    /// Settles the run, and gives the spans that are to be exported now.
    pub(crate) fn settle(&self, keep: bool) -> Vec<SpanData> {
        let next = if keep { Held::Kept } else { Held::Forgotten };
        let Held::Spans(spans) = std::mem::replace(&mut *self.held(), next) else { return Vec::new() };
        if !keep {
            return Vec::new();
        }
        let Some(outer) = &self.0.outer else { return spans };
        spans.into_iter().filter_map(|span| outer.take(span)).collect()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
