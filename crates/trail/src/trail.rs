//! The handle through which all tracing is done.

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
    carrier::{AnnotationKeys, ObjectContext},
    child::stamps::StampCache,
    client::{refusals::RefusalCounter, write_history::WriteHistory},
    deferred_spans::DeferredSpanProcessor,
    lineage::{FoundContext, repairs::OngoingRepairs, tracked_objects::TrackedObjects},
    trust::NamespaceTrust,
};

/// Longer than a normal convergence, and short enough that a repair tomorrow is not shown as part of today's
/// change.
const DEFAULT_DRIFT_AFTER: Duration = Duration::from_secs(600);

/// Traces the work of controllers. Clones share their state.
///
/// ```
/// # use kubewake_trail::{DeferredSpanProcessor, FollowLinks, Options, Trail};
/// # use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SimpleSpanProcessor};
/// # let exporter = InMemorySpanExporter::default();
/// let hold = DeferredSpanProcessor::new(SimpleSpanProcessor::new(exporter));
/// let provider = SdkTracerProvider::builder()
///     .with_sampler(FollowLinks::with_ratio(1.0))
///     .with_span_processor(hold.clone())
///     .build();
/// let trail = Trail::new(&provider, hold, Options::default());
/// ```
#[derive(Clone, Debug)]
pub struct Trail(Option<Arc<TrailState>>);

/// The shared state of all clones.
pub(crate) struct TrailState {
    pub(crate) tracer: SdkTracer,
    pub(crate) scope: InstrumentationScope,
    pub(crate) processor: DeferredSpanProcessor,
    pub(crate) options: Options,
    pub(crate) counts: AtomicTrailCounters,
    pub(crate) tracked_objects: TrackedObjects,
    pub(crate) ongoing_repairs: OngoingRepairs,
    pub(crate) stamp_cache: StampCache,
    pub(crate) write_history: WriteHistory,
    pub(crate) refusals: RefusalCounter,
    /// Whether a traced client exists, so that a run without recorded writes is known to have changed nothing.
    pub(crate) tracks_writes: AtomicBool,
}

/// The relation between the runs of a controller and the context on its objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceMode {
    /// A run is a child of the context on its object: one trace with everything in it.
    #[default]
    Tree,
    /// A run is a new root with a link to that context: many small traces.
    Links,
}

/// The options of a [`Trail`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether runs are children or linked roots.
    pub mode: TraceMode,
    /// The annotation keys of the context.
    pub keys: AnnotationKeys,
    /// The namespaces whose contexts are trusted.
    pub trust: NamespaceTrust,
    /// Work on an object that was ready is a repair if the object's context is older: a new root with a link.
    pub drift_after: Duration,
    /// The type of the status condition that says that an object is ready.
    pub ready: String,
    /// The source of the current time.
    pub clock: TrailClock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: TraceMode::Tree,
            keys: AnnotationKeys::default(),
            trust: NamespaceTrust::everyone(),
            drift_after: DEFAULT_DRIFT_AFTER,
            ready: "Ready".to_owned(),
            clock: TrailClock::default(),
        }
    }
}

/// A source of the current time, replaceable in tests.
#[derive(Clone)]
pub struct TrailClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl TrailClock {
    /// Creates a clock from a function.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.0()
    }

    /// The current time; the beginning of 1970 if the clock shows a time that no calendar has.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::try_from(self.now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl Default for TrailClock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for TrailClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TrailClock")
    }
}

#[derive(Debug, Default)]
pub(crate) struct AtomicTrailCounters {
    pub(crate) runs: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    pub(crate) untrusted: AtomicU64,
}

/// Counters since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrailCounters {
    /// Runs of reconcilers.
    pub runs: u64,
    /// Runs that were recorded and then dropped, because they changed nothing.
    pub dropped: u64,
    /// Annotations under known keys whose value could not be read.
    pub unreadable: u64,
    /// Contexts that were not followed, because their namespace is not trusted.
    pub untrusted: u64,
}

impl Trail {
    /// Creates a trail on this provider, whose only processor has to be the given one.
    #[must_use]
    pub fn new(provider: &SdkTracerProvider, hold: DeferredSpanProcessor, options: Options) -> Self {
        let scope = InstrumentationScope::builder("kubewake-trail").with_version(env!("CARGO_PKG_VERSION")).build();
        Self(Some(Arc::new(TrailState {
            tracer: provider.tracer_with_scope(scope.clone()),
            scope,
            processor: hold,
            options,
            counts: AtomicTrailCounters::default(),
            tracked_objects: TrackedObjects::default(),
            ongoing_repairs: OngoingRepairs::default(),
            stamp_cache: StampCache::default(),
            write_history: WriteHistory::default(),
            refusals: RefusalCounter::default(),
            tracks_writes: AtomicBool::new(false),
        })))
    }

    /// Creates a trail that traces nothing: no span, no annotation, no change of a request.
    #[must_use]
    pub fn disabled() -> Self {
        Self(None)
    }

    /// Whether tracing is enabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// The current values of the counters.
    #[must_use]
    pub fn counters(&self) -> TrailCounters {
        let Some(shared) = &self.0 else { return TrailCounters::default() };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let AtomicTrailCounters { runs, dropped, unreadable, untrusted } = &shared.counts;
        TrailCounters {
            runs: read(runs),
            dropped: read(dropped),
            unreadable: read(unreadable),
            untrusted: read(untrusted),
        }
    }

    /// The context on an object, whichever tool wrote it, if it is trusted.
    #[must_use]
    pub fn object_context<K: Resource>(&self, object: &K) -> Option<ObjectContext> {
        self.0.as_ref()?.read_context(object).trusted().cloned()
    }

    /// A tracer for the program's own spans, which are exported with ours.
    #[must_use]
    pub fn tracer(&self) -> BoxedTracer {
        match &self.0 {
            Some(shared) => BoxedTracer::new(Box::new(shared.tracer.clone())),
            None => BoxedTracer::new(Box::new(NoopTracer::new())),
        }
    }

    pub(crate) fn shared(&self) -> Option<&Arc<TrailState>> {
        self.0.as_ref()
    }
}

impl TrailState {
    /// Reads the context on an object. Counts one that cannot be read or is not trusted.
    pub(crate) fn read_context<K: Resource>(&self, object: &K) -> FoundContext {
        let meta = object.meta();
        let reading = self.options.keys.read(meta.annotations.as_ref());
        if reading.unreadable > 0 {
            self.counts.unreadable.fetch_add(reading.unreadable.into(), Ordering::Relaxed);
        }
        let Some(context) = reading.found else { return FoundContext::Missing };
        if self.options.trust.is_trusted(meta.namespace.as_deref()) {
            return FoundContext::Trusted(context);
        }
        self.counts.untrusted.fetch_add(1, Ordering::Relaxed);
        FoundContext::Untrusted(context)
    }

    /// The age of a context, where it has the time of its stamp.
    pub(crate) fn context_age(&self, found: Option<&ObjectContext>) -> Option<Duration> {
        let stamped_at = found?.stamped_at?;
        Some(Duration::try_from(self.options.clock.timestamp().duration_since(stamped_at)).unwrap_or_default())
    }
}

impl fmt::Debug for TrailState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TrailState").field("options", &self.options).finish_non_exhaustive()
    }
}
