//! The handle that everything hangs on.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use kube::Resource;
use opentelemetry::{
    InstrumentationScope,
    global::BoxedTracer,
    trace::{TracerProvider as _, noop::NoopTracer},
};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use crate::{
    carrier::{Found, Keys},
    child::stamps::Stamps,
    client::{known::Known, refusals::Refusals},
    controller::{objects::Objects, repairs::Repairs},
    hold::Hold,
    trust::Trust,
};

/// Longer than any convergence that is not stuck, and short enough that a repair tomorrow is not shown as part of today's change.
const DRIFT_AFTER: Duration = Duration::from_secs(600);

/// Traces the work of controllers. A clone is the same one.
///
/// ```
/// # use kubewake_trail::{Hold, FollowLinks, Options, Trail};
/// # use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SimpleSpanProcessor};
/// # let exporter = InMemorySpanExporter::default();
/// let hold = Hold::new(SimpleSpanProcessor::new(exporter));
/// let provider = SdkTracerProvider::builder()
///     .with_sampler(FollowLinks::ratio(1.0))
///     .with_span_processor(hold.clone())
///     .build();
/// let trail = Trail::new(&provider, hold, Options::default());
/// ```
#[derive(Clone, Debug)]
pub struct Trail(Option<Arc<Shared>>);

/// What all clones have in common.
pub(crate) struct Shared {
    pub(crate) tracer: SdkTracer,
    pub(crate) scope: InstrumentationScope,
    pub(crate) hold: Hold,
    pub(crate) options: Options,
    pub(crate) counts: Counts,
    pub(crate) objects: Objects,
    pub(crate) repairs: Repairs,
    pub(crate) stamps: Stamps,
    pub(crate) known: Known,
    pub(crate) refusals: Refusals,
    /// Whether a client of ours exists, so that a run without writes is known to have changed nothing.
    pub(crate) tracks_writes: AtomicBool,
}

/// How the runs of a controller hang together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A run is a child of the context on its object: one trace with everything in it.
    #[default]
    Tree,
    /// A run is a new root with a link to that context: many small traces.
    Links,
}

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// Children or links.
    pub mode: Mode,
    /// The annotations that carry the context.
    pub keys: Keys,
    /// Whose contexts are believed.
    pub trust: Trust,
    /// Work on an object that was ready, and whose context is older than this, is a repair: a new root with a link.
    pub drift_after: Duration,
    /// The condition in the status that says that an object is ready.
    pub ready: String,
    /// What time it is.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Tree,
            keys: Keys::default(),
            trust: Trust::everyone(),
            drift_after: DRIFT_AFTER,
            ready: "Ready".to_owned(),
            clock: Clock::default(),
        }
    }
}

/// Tells the time, so that tests can choose it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// A clock that shows what a function says.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.0()
    }

    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp::try_from(self.now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

/// How often something happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) runs: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) garbage: AtomicU64,
    pub(crate) untrusted: AtomicU64,
}

/// How often something happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Runs of reconcilers.
    pub runs: u64,
    /// Runs that were recorded and dropped again, as they changed nothing.
    pub dropped: u64,
    /// Annotations that should hold a context and hold nothing that can be read.
    pub garbage: u64,
    /// Contexts that were not followed, as their namespace is not believed.
    pub untrusted: u64,
}

impl Trail {
    /// Traces with this provider, whose only processor is this one.
    #[must_use]
    pub fn new(provider: &SdkTracerProvider, hold: Hold, options: Options) -> Self {
        let scope = InstrumentationScope::builder("kubewake-trail").with_version(env!("CARGO_PKG_VERSION")).build();
        Self(Some(Arc::new(Shared {
            tracer: provider.tracer_with_scope(scope.clone()),
            scope,
            hold,
            options,
            counts: Counts::default(),
            objects: Objects::default(),
            repairs: Repairs::default(),
            stamps: Stamps::default(),
            known: Known::default(),
            refusals: Refusals::default(),
            tracks_writes: AtomicBool::new(false),
        })))
    }

    /// Traces nothing: reconcilers run as they are, no annotation is written, and no request is changed.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// Whether anything is traced.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// How often something happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let Some(shared) = &self.0 else { return Counters::default() };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { runs, dropped, garbage, untrusted } = &shared.counts;
        Counters { runs: read(runs), dropped: read(dropped), garbage: read(garbage), untrusted: read(untrusted) }
    }

    /// The context on an object, whoever wrote it, if it is believed.
    #[must_use]
    pub fn context_of<K: Resource>(&self, object: &K) -> Option<Found> {
        let (found, believed) = self.0.as_ref()?.read(object);
        found.filter(|_| believed)
    }

    /// Makes spans of the program's own, which are exported with ours.
    #[must_use]
    pub fn tracer(&self) -> BoxedTracer {
        match &self.0 {
            Some(shared) => BoxedTracer::new(Box::new(shared.tracer.clone())),
            None => BoxedTracer::new(Box::new(NoopTracer::new())),
        }
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Shared>> {
        self.0.as_ref()
    }
}

impl Shared {
    /// The context on an object, and whether it is believed.
    pub(crate) fn read<K: Resource>(&self, object: &K) -> (Option<Found>, bool) {
        let meta = object.meta();
        let reading = self.options.keys.read(meta.annotations.as_ref());
        if reading.garbage > 0 {
            self.counts.garbage.fetch_add(reading.garbage.into(), Ordering::Relaxed);
        }
        let believed = self.options.trust.believes(meta.namespace.as_deref());
        if reading.found.is_some() && !believed {
            self.counts.untrusted.fetch_add(1, Ordering::Relaxed);
        }
        (reading.found, believed)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
