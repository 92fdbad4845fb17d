//! Wrapped reconcilers without a cluster: relations, hostile annotations, nested spans, exporters that hang.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::FutureExt as _;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentCondition, DeploymentStatus},
        core::v1::ConfigMap,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{api::ObjectMeta, runtime::controller::Action};
use kubewake_trail::{
    DeferredSpanProcessor, FollowLinks, NamespaceTrust, Options, Run, TraceMode, Trail, TrailClock,
    carrier::AnnotationKeys, operand::OperandWork, tracing_layer,
};
use opentelemetry::trace::{SpanBuilder, SpanId, Status, TraceContextExt as _, TracerProvider as _};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{
        BatchSpanProcessor, InMemorySpanExporter, Sampler, SdkTracerProvider, SimpleSpanProcessor, SpanData,
        SpanExporter, SpanProcessor,
    },
};
use proptest::prelude::*;
use tracing_subscriber::layer::SubscriberExt as _;

const USER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const USER_SPAN: &str = "00f067aa0ba902b7";

#[derive(Debug, thiserror::Error)]
#[error("it is broken")]
struct Broken;

struct Traced {
    trail: Trail,
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
}

impl Traced {
    fn with(options: Options, sampler: Sampler) -> Self {
        let exporter = InMemorySpanExporter::default();
        let (trail, provider) = trail(SimpleSpanProcessor::new(exporter.clone()), options, sampler);
        // As with a client: a run without recorded writes counts as unchanged.
        let _ = trail.layer();
        Self { trail, exporter, provider }
    }

    /// Runs a reconciler that changes something.
    fn run(&self, object: &Deployment) -> Vec<SpanData> {
        self.exporter.reset();
        let reconcile = |_: Arc<Deployment>, _: Arc<()>| async {
            Run::current().unwrap().note_change();
            Ok::<_, Broken>(Action::requeue(Duration::from_secs(300)))
        };
        self.reconcile(object, reconcile).unwrap();
        self.exporter.get_finished_spans().unwrap()
    }

    fn reconcile<F>(
        &self,
        object: &Deployment,
        reconcile: impl FnMut(Arc<Deployment>, Arc<()>) -> F,
    ) -> Result<Action, Broken>
    where
        F: Future<Output = Result<Action, Broken>> + Send + 'static,
    {
        self.trail.reconcile(reconcile)(Arc::new(object.clone()), Arc::new(())).now_or_never().unwrap()
    }
}

fn trail(processor: impl SpanProcessor + 'static, options: Options, sampler: Sampler) -> (Trail, SdkTracerProvider) {
    let hold = DeferredSpanProcessor::new(processor);
    let sampler = FollowLinks::new(sampler);
    let provider = SdkTracerProvider::builder().with_sampler(sampler).with_span_processor(hold.clone()).build();
    (Trail::new(&provider, hold, options), provider)
}

fn object(annotations: &[(&str, &str)]) -> Deployment {
    let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let metadata = ObjectMeta {
        name: Some("one".to_owned()),
        namespace: Some("shop".to_owned()),
        uid: Some("7".to_owned()),
        generation: Some(2),
        annotations: Some(annotations.collect()),
        ..ObjectMeta::default()
    };
    Deployment { metadata, ..Deployment::default() }
}

fn ready(mut object: Deployment) -> Deployment {
    let condition =
        DeploymentCondition { type_: "Available".to_owned(), status: "True".to_owned(), ..Default::default() };
    let status =
        DeploymentStatus { conditions: Some(vec![condition]), observed_generation: Some(2), ..Default::default() };
    object.status = Some(status);
    object
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    span.attributes.iter().find(|it| it.key.as_str() == key).map(|it| it.value.to_string())
}

fn parent(span: &SpanData) -> Option<String> {
    Some(span.parent_span_id).filter(|id| *id != SpanId::INVALID).map(|id| id.to_string())
}

fn links(span: &SpanData) -> Vec<String> {
    span.links.iter().map(|link| link.span_context.span_id().to_string()).collect()
}

#[test]
fn a_repair_long_after_the_change_is_a_root_with_a_link() {
    let at = |seconds| TrailClock::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let stamp = [
        ("tracing.k8s.io/traceparent", USER),
        ("trail.kubewake.io/changed", "1970-01-01T00:01:00.000000Z"),
        ("trail.kubewake.io/generation", "2"),
    ];
    let options = |seconds| Options { clock: at(seconds), ready: "Available".to_owned(), ..Options::default() };

    let soon = Traced::with(options(120), Sampler::AlwaysOff).run(&ready(object(&stamp)));
    assert_eq!((parent(&soon[0]).as_deref(), links(&soon[0]).len()), (Some(USER_SPAN), 0));
    assert_eq!(attribute(&soon[0], "trail.requeue").as_deref(), Some("300s"));

    let late = Traced::with(options(5000), Sampler::AlwaysOff).run(&ready(object(&stamp)));
    assert_eq!((parent(&late[0]), links(&late[0])), (None, vec![USER_SPAN.to_owned()]));
    assert_eq!(attribute(&late[0], "trail.drift").as_deref(), Some("true"));

    let still_at_it = Traced::with(options(5000), Sampler::AlwaysOff).run(&object(&stamp));
    assert_eq!(parent(&still_at_it[0]).as_deref(), Some(USER_SPAN));
}

#[test]
fn a_change_past_the_webhook_is_a_root_with_a_link() {
    let stamp = [("tracing.k8s.io/traceparent", USER), ("trail.kubewake.io/generation", "1")];
    let spans = Traced::with(Options::default(), Sampler::AlwaysOff).run(&object(&stamp));
    assert_eq!((parent(&spans[0]), links(&spans[0])), (None, vec![USER_SPAN.to_owned()]));
}

#[test]
fn who_is_not_believed_neither_leads_nor_decides_what_is_recorded() {
    let stamp = [("tracing.k8s.io/traceparent", USER)];
    let options = Options { trust: NamespaceTrust::only(["platform"]), ..Options::default() };
    assert!(Traced::with(options.clone(), Sampler::AlwaysOff).run(&object(&stamp)).is_empty());
    let spans = Traced::with(options, Sampler::AlwaysOn).run(&object(&stamp));
    assert_eq!((parent(&spans[0]), links(&spans[0]).len()), (None, 0));
    let options = Options { trust: NamespaceTrust::only(["platform"]).link_others(), ..Options::default() };
    assert!(Traced::with(options.clone(), Sampler::AlwaysOff).run(&object(&stamp)).is_empty());
    let spans = Traced::with(options, Sampler::AlwaysOn).run(&object(&stamp));
    assert_eq!((parent(&spans[0]), links(&spans[0])), (None, vec![USER_SPAN.to_owned()]));
}

#[test]
fn garbage_in_the_place_of_a_context_is_as_if_there_were_none_and_is_counted() {
    let traced = Traced::with(Options::default(), Sampler::AlwaysOn);
    let long = "a".repeat(100_000);
    let spans = traced.run(&object(&[("tracing.k8s.io/traceparent", &long), ("traceparent", "garbage")]));
    assert_eq!((parent(&spans[0]), links(&spans[0]).len()), (None, 0));
    assert_eq!(traced.trail.counters().unreadable, 2);
    // One of the foreign annotations may be valid.
    let tekton = format!(r#"{{"traceparent":"{USER}"}}"#);
    let spans =
        traced.run(&object(&[("tracing.k8s.io/traceparent", "??"), ("tekton.dev/taskrunSpanContext", &tekton)]));
    assert_eq!(parent(&spans[0]).as_deref(), Some(USER_SPAN));
    assert_eq!(attribute(&spans[0], "trail.source").as_deref(), Some("tekton"));
    assert_eq!(traced.trail.counters().unreadable, 3);
}

#[test]
fn the_annotation_is_the_users_choice() {
    let options = Options { keys: AnnotationKeys::new("tracing.example.com").unwrap(), ..Options::default() };
    let spans = Traced::with(options, Sampler::AlwaysOn).run(&object(&[("tracing.example.com/traceparent", USER)]));
    assert_eq!(parent(&spans[0]).as_deref(), Some(USER_SPAN));
}

#[test]
fn a_run_that_changes_nothing_leaves_nothing_and_a_failure_is_passed_on() {
    let traced = Traced::with(Options::default(), Sampler::AlwaysOn);
    let object = object(&[]);
    let nothing = |_: Arc<Deployment>, _: Arc<()>| async { Ok::<_, Broken>(Action::await_change()) };
    assert_eq!(traced.reconcile(&object, nothing).unwrap(), Action::await_change());
    assert!(traced.exporter.get_finished_spans().unwrap().is_empty());
    assert_eq!((traced.trail.counters().runs, traced.trail.counters().dropped), (1, 1));
    let broken = |_: Arc<Deployment>, _: Arc<()>| async { Err::<Action, _>(Broken) };
    assert!(traced.reconcile(&object, broken).is_err());
    assert_eq!(traced.exporter.get_finished_spans().unwrap().len(), 1);
}

#[test]
fn an_object_that_cannot_be_is_an_error_where_that_is_told() {
    let traced = Traced::with(Options::default(), Sampler::AlwaysOn);
    for changes in [true, false] {
        let refuse = move |_: Arc<Deployment>, _: Arc<()>| async move {
            let run = Run::current().unwrap();
            run.note_failure("Refused", "there is no such plugin");
            if changes {
                run.note_change();
            }
            Ok::<_, Broken>(Action::await_change())
        };
        traced.exporter.reset();
        traced.reconcile(&object(&[]), refuse).unwrap();
        let spans = traced.exporter.get_finished_spans().unwrap();
        assert_eq!(spans.len(), usize::from(changes), "what was told before is told no more");
        for span in spans {
            assert_eq!(span.status, Status::error("there is no such plugin"));
            assert_eq!(attribute(&span, "error.type").as_deref(), Some("Refused"));
            assert_eq!(attribute(&span, "trail.outcome").as_deref(), Some("failed"));
        }
    }
}

#[tracing::instrument]
async fn inner() {
    inmost();
}

#[tracing::instrument]
fn inmost() {}

#[test]
fn instrumented_functions_nest_inside_and_share_the_fate_of_the_run() {
    let traced = Traced::with(Options::default(), Sampler::AlwaysOn);
    let subscriber = tracing_subscriber::registry().with(tracing_layer(traced.provider.tracer("tests")));
    let _default = tracing::subscriber::set_default(subscriber);
    for changes in [true, false] {
        traced.exporter.reset();
        let reconcile = move |_: Arc<Deployment>, _: Arc<()>| async move {
            inner().await;
            if changes {
                Run::current().unwrap().note_change();
            }
            Ok::<_, Broken>(Action::await_change())
        };
        // The span that kube opens around each run.
        let around = tracing::info_span!(target: "kube_runtime::controller", "reconciling object");
        around.in_scope(|| traced.reconcile(&object(&[("tracing.k8s.io/traceparent", USER)]), reconcile)).unwrap();
        let spans = traced.exporter.get_finished_spans().unwrap();
        let id = |name: &str| spans.iter().find(|it| it.name == name).map(|it| it.span_context.span_id().to_string());
        let parent = |name: &str| spans.iter().find(|it| it.name == name).and_then(parent);
        if !changes {
            assert!(spans.is_empty());
            continue;
        }
        assert_eq!(spans.len(), 3);
        assert_eq!(parent("reconcile Deployment").as_deref(), Some(USER_SPAN));
        assert_eq!(parent("inner"), id("reconcile Deployment"));
        assert_eq!(parent("inmost"), id("inner"));
    }
}

#[test]
fn a_converge_span_is_the_same_whoever_writes_it() {
    let stamp = [
        ("tracing.k8s.io/traceparent", USER),
        ("trail.kubewake.io/changed", "2026-01-01T00:00:00.5Z"),
        ("trail.kubewake.io/previous", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];
    let write = || {
        let traced = Traced::with(Options::default(), Sampler::AlwaysOff);
        let object = object(&stamp);
        traced.trail.mark_converged(&object);
        traced.trail.mark_converged(&object);
        let mut spans = traced.exporter.get_finished_spans().unwrap();
        assert_eq!(spans.len(), 1, "once for each generation");
        spans.remove(0)
    };
    let first = write();
    let second = write();
    assert_eq!(first.span_context, second.span_context);
    assert_eq!(first.span_context.trace_id().to_string(), USER[3..35]);
    assert_eq!((&*first.name, parent(&first).as_deref()), ("converge Deployment", Some(USER_SPAN)));
    assert_eq!(links(&first), ["b7ad6b7169203331"]);
    let start: jiff::Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
    assert_eq!(first.start_time, SystemTime::from(start));
}

#[test]
fn objects_and_generations_have_converge_spans_of_their_own() {
    let traced = Traced::with(Options::default(), Sampler::AlwaysOff);
    for (uid, generation) in [("7", 1), ("7", 2), ("8", 2)] {
        let mut object = object(&[("tracing.k8s.io/traceparent", USER)]);
        (object.metadata.uid, object.metadata.generation) = (Some(uid.to_owned()), Some(generation));
        traced.trail.mark_converged(&object);
    }
    let spans = traced.exporter.get_finished_spans().unwrap();
    let ids: BTreeSet<_> = spans.iter().map(|span| span.span_context.span_id().to_string()).collect();
    assert_eq!((spans.len(), ids.len()), (3, 3));
}

#[test]
fn without_a_stamp_a_convergence_begins_when_the_object_was_seen_or_in_the_second_of_its_creation() {
    let start = |seen_after: Duration| {
        let created = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let options = Options { clock: TrailClock::new(move || created + seen_after), ..Options::default() };
        let traced = Traced::with(options, Sampler::AlwaysOn);
        let mut object = object(&[]);
        object.metadata.generation = Some(1);
        object.metadata.creation_timestamp = Some(Time(jiff::Timestamp::try_from(created).unwrap()));
        let trail = traced.trail.clone();
        let ready = object.clone();
        let reconcile = move |_: Arc<Deployment>, _: Arc<()>| {
            let trail = trail.clone();
            let ready = ready.clone();
            async move {
                trail.mark_converged(&ready);
                Ok::<_, Broken>(Action::await_change())
            }
        };
        traced.reconcile(&object, reconcile).unwrap();
        let spans = traced.exporter.get_finished_spans().unwrap();
        let converge = spans.iter().find(|span| span.name == "converge Deployment").unwrap();
        converge.start_time.duration_since(created).unwrap()
    };
    assert_eq!(start(Duration::from_millis(700)), Duration::from_millis(700), "seen at once");
    assert_eq!(start(Duration::from_secs(60)), Duration::ZERO, "seen after a restart");
}

#[test]
fn an_operand_continues_from_what_it_watches() {
    let annotations = BTreeMap::from([("tracing.k8s.io/traceparent".to_owned(), USER.to_owned())]);
    let metadata = ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() };
    let configuration = ConfigMap { metadata, ..ConfigMap::default() };
    for mode in [TraceMode::Tree, TraceMode::Links] {
        let traced = Traced::with(Options { mode, ..Options::default() }, Sampler::AlwaysOff);
        let span = SpanBuilder::from_name("take configuration");
        traced.trail.follow(&configuration, OperandWork::Repeated, span).span().end();
        let spans = traced.exporter.get_finished_spans().unwrap();
        let expected = match mode {
            TraceMode::Tree => (Some(USER_SPAN.to_owned()), vec![]),
            TraceMode::Links => (None, vec![USER_SPAN.to_owned()]),
        };
        assert_eq!((parent(&spans[0]), links(&spans[0])), expected);
    }
    Trail::disabled().follow(&configuration, OperandWork::Requested, SpanBuilder::from_name("nothing")).span().end();
}

/// An exporter that never returns.
#[derive(Debug)]
struct Stuck;

impl SpanExporter for Stuck {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        std::future::pending().await
    }
}

#[test]
fn an_exporter_that_hangs_costs_nobody_anything() {
    let processor = BatchSpanProcessor::builder(Stuck).build();
    let (trail, provider) = trail(processor, Options::default(), Sampler::AlwaysOn);
    let reconcile = |_: Arc<Deployment>, _: Arc<()>| async { Ok::<_, Broken>(Action::await_change()) };
    let mut reconcile = trail.reconcile(reconcile);
    // Twice the capacity of its queue.
    for _ in 0..5000 {
        reconcile(Arc::new(object(&[])), Arc::new(())).now_or_never().unwrap().unwrap();
    }
    // Its shutdown would wait for the exporter for as long as the program allows.
    std::mem::forget(provider);
}

fn hostile() -> impl Strategy<Value = Vec<(String, String)>> {
    let keys = AnnotationKeys::default();
    let mut names: Vec<String> = keys.all().map(str::to_owned).into();
    names.extend(["traceparent", "tekton.dev/taskrunSpanContext", "trace.kubernetes.io/context"].map(str::to_owned));
    let value = prop_oneof![
        ".*",
        "00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]",
        "[0-9a-f-]{50,60}",
        Just(USER.to_owned()),
        "\\PC{0,2000}",
        "-?[0-9]{1,25}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
    ];
    prop::collection::vec((prop::sample::select(names), value), 0..9)
}

proptest! {
    #[test]
    fn no_annotation_breaks_a_reconcile(annotations in hostile(), links in any::<bool>(), is_ready in any::<bool>()) {
        let mode = if links { TraceMode::Links } else { TraceMode::Tree };
        let options = Options { mode, ready: "Available".to_owned(), ..Options::default() };
        let traced = Traced::with(options, Sampler::AlwaysOn);
        let pairs: Vec<_> = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let object = if is_ready { ready(object(&pairs)) } else { object(&pairs) };
        let spans = traced.run(&object);
        prop_assert!(spans.len() <= 1);
        traced.trail.mark_converged(&object);
        traced.trail.follow(&object, OperandWork::Repeated, SpanBuilder::from_name("work")).span().end();
    }
}
