use std::{
    sync::atomic::Ordering,
    time::{Duration, SystemTime},
};

use k8s_openapi::api::{apps::v1::Deployment, events::v1::Event as Published};
use kube::{
    Api, Resource as _, ResourceExt as _,
    api::{ListParams, ObjectMeta, Patch, PatchParams},
    runtime::events::{Event, EventType},
};
use kubewake_trail::{
    NamespaceTrust, Options, TraceMode, TrailCounters, events::TRACE_ID_ANNOTATION, operand::OperandWork,
};
use opentelemetry::{
    context::FutureExt as _,
    trace::{SpanBuilder, Status, TraceContextExt as _},
};
use opentelemetry_sdk::trace::{Sampler, SpanData};
use serde_json::json;

use crate::{
    cluster::{Cluster, NAMESPACE, Process, Settings, somebody},
    edges::Edges,
};

const PATCH_CHILD: &str = "PATCH /api/v1/namespaces/{:namespace}/configmaps/{:name}";
const PATCH_STATUS: &str = "PATCH /apis/trail.test/v1/namespaces/{:namespace}/heads/{:name}/status";

fn whole(context: &str) -> Vec<String> {
    vec![
        format!("{PATCH_CHILD} < apply ConfigMap"),
        format!("{PATCH_STATUS} < status Head"),
        "apply ConfigMap < reconcile Head".to_owned(),
        format!("converge Head < {context}"),
        format!("reconcile Head < {context}"),
        "status Head < reconcile Head".to_owned(),
    ]
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    span.attributes.iter().find(|it| it.key.as_str() == key).map(|it| it.value.to_string())
}

fn named<'a>(spans: &'a [SpanData], name: &str) -> Vec<&'a SpanData> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[tokio::test]
async fn a_change_is_one_trace_and_nothing_after_it_makes_it_grow() {
    let cluster = Cluster::start().await;
    let process = Process::start_and_watch(&cluster, Settings::default()).await;
    let (text, context) = somebody('a');
    let created = cluster.create("one", Some(&text)).await.metadata;
    process.until_span("converge Head", 1).await;
    process.resync(100).await;
    let spans = process.spans();
    assert_eq!(Edges::default().knows("the user", &context).of(&spans), whole("the user"));
    assert!(spans.iter().all(|span| span.span_context.trace_id() == context.trace_id()));
    assert!(process.trail.counters().dropped >= 50, "{:?}", process.trail.counters());

    let run = named(&spans, "reconcile Head")[0];
    let uid = created.uid.unwrap();
    let revision = created.resource_version.unwrap();
    for (key, value) in [
        ("k8s.object.kind", "Head"),
        ("k8s.object.api_version", "trail.test/v1"),
        ("k8s.namespace.name", NAMESPACE),
        ("k8s.object.name", "one"),
        ("k8s.object.uid", &*uid),
        ("k8s.object.generation", "1"),
        ("k8s.object.resource_version", &*revision),
        ("trail.reason", "object_updated"),
        ("trail.attempt", "1"),
        ("trail.outcome", "changed"),
        ("trail.writes", "2"),
        ("trail.source", "trail"),
    ] {
        assert_eq!(attribute(run, key).as_deref(), Some(value), "{key}");
    }
    assert!(attribute(run, "trail.queue_wait_ms").unwrap().parse::<f64>().unwrap() >= 0.0);
    let converge = named(&spans, "converge Head")[0];
    assert_eq!(attribute(converge, "k8s.object.uid").as_deref(), Some(&*uid));

    let child = cluster.children().get("one-child").await.unwrap();
    let found = process.trail.object_context(&child).unwrap();
    assert_eq!(found.context.span_id(), named(&spans, "apply ConfigMap")[0].span_context.span_id());
    assert_eq!(child.metadata.owner_references.unwrap()[0].name, "one");
}

#[tokio::test]
async fn the_start_makes_no_spans_of_what_is_in_order() {
    let cluster = Cluster::start().await;
    let first = Process::start(&cluster, Settings::default());
    for name in ["one", "two", "three"] {
        cluster.create(name, Some(&somebody('a').0)).await;
    }
    first.until_span("converge Head", 3).await;
    first.resync(3).await;
    first.stop().await;

    let second = Process::start(&cluster, Settings::default());
    second.until("three runs", |it| it.trail.counters().dropped >= 3).await;
    second.resync(10).await;
    assert_eq!(Edges::default().of(&second.stop().await), Vec::<String>::new());
}

#[tokio::test]
async fn a_restart_in_the_middle_continues_the_trace() {
    let cluster = Cluster::start().await;
    let first = Process::start(&cluster, Settings { completes: false, ..Settings::default() });
    let (text, context) = somebody('a');
    let head = cluster.create("one", Some(&text)).await;
    first.until_span("reconcile Head", 1).await;
    first.resync(3).await;
    let edges = Edges::default().knows("the user", &context);
    assert_eq!(
        edges.of(&first.stop().await),
        [&*format!("{PATCH_CHILD} < apply ConfigMap"), "apply ConfigMap < reconcile Head", "reconcile Head < the user"]
    );

    let second = Process::start(&cluster, Settings::default());
    second.until_span("converge Head", 1).await;
    second.resync(10).await;
    let spans = second.stop().await;
    let rest: Vec<_> = whole("the user").into_iter().filter(|line| !line.contains("ConfigMap")).collect();
    let rest: Vec<_> = rest.into_iter().filter(|line| !line.contains("configmaps")).collect();
    assert_eq!(edges.of(&spans), rest, "the child is as it should be, and applying it again leaves nothing");
    let run = named(&spans, "reconcile Head")[0];
    assert_eq!(attribute(run, "trail.reason").as_deref(), Some("initial_list"));
    assert!(spans.iter().all(|span| span.span_context.trace_id() == context.trace_id()));
    // `creationTimestamp` has whole seconds; the process saw the Head within that second.
    let created = SystemTime::from(head.metadata.creation_timestamp.unwrap().0);
    let after = named(&spans, "converge Head")[0].start_time.duration_since(created).unwrap();
    assert!(after < Duration::from_secs(1), "{after:?}");
}

#[tokio::test]
async fn two_changes_are_two_traces_with_a_link() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings::default());
    let ((first, a), (second, b)) = (somebody('a'), somebody('b'));
    cluster.create("one", Some(&first)).await;
    process.until_span("converge Head", 1).await;
    cluster.change("one", 2, Some(&second)).await;
    process.until_span("converge Head", 2).await;
    process.resync(10).await;
    let edges = Edges::default().knows("first", &a).knows("second", &b);
    let (of_a, of_b): (Vec<_>, Vec<_>) =
        process.spans().into_iter().partition(|span| span.span_context.trace_id() == a.trace_id());
    assert_eq!(edges.of(&of_a), whole("first"));
    let mut expected = whole("second");
    expected[4] = "reconcile Head < second ~ first".to_owned();
    assert_eq!(edges.of(&of_b), expected);
}

#[tokio::test]
async fn links_instead_of_a_tree() {
    let cluster = Cluster::start().await;
    let options = Options { mode: TraceMode::Links, ..Options::default() };
    let process = Process::start(&cluster, Settings { options, sampler: Sampler::AlwaysOff, ..Settings::default() });
    let (text, context) = somebody('a');
    cluster.create("one", Some(&text)).await;
    process.until_span("converge Head", 1).await;
    process.resync(10).await;
    let mut expected = whole("the user");
    expected[4] = "reconcile Head < nothing ~ the user".to_owned();
    assert_eq!(Edges::default().knows("the user", &context).of(&process.spans()), expected);
}

#[tokio::test]
async fn a_change_that_left_no_context_is_a_trace_of_its_own() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings::default());
    let (text, context) = somebody('a');
    cluster.create("one", Some(&text)).await;
    process.until_span("converge Head", 1).await;
    process.exporter.reset();
    cluster.change("one", 2, None).await;
    process.until_span("status Head", 1).await;
    process.resync(10).await;
    let lines = Edges::default().knows("the user", &context).of(&process.spans());
    assert!(lines.contains(&"reconcile Head < nothing ~ the user".to_owned()), "{lines:#?}");
}

#[tokio::test]
async fn whose_context_is_not_believed_is_not_followed() {
    let cluster = Cluster::start().await;
    let options = Options { trust: NamespaceTrust::except(["default"]), ..Options::default() };
    let process = Process::start(&cluster, Settings { options, ..Settings::default() });
    let (text, context) = somebody('a');
    cluster.create("one", Some(&text)).await;
    process.until_span("status Head", 1).await;
    process.resync(3).await;
    let spans = process.spans();
    let runs = named(&spans, "reconcile Head");
    assert_eq!(Edges::default().of(&[runs[0].clone()]), ["reconcile Head < nothing"]);
    assert!(spans.iter().all(|span| span.span_context.trace_id() != context.trace_id()));
    assert!(process.trail.counters().untrusted > 0);
}

#[tokio::test]
async fn failures_are_seen_and_do_not_flood() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings { fails: true, ..Settings::default() });
    cluster.create("one", Some(&somebody('a').0)).await;
    process.until("many attempts", |it| it.trail.counters().runs >= 40).await;
    process.work.fails.store(false, Ordering::SeqCst);
    process.until_span("converge Head", 1).await;
    let spans = process.spans();
    let runs = named(&spans, "reconcile Head");
    let failed: Vec<_> = runs.iter().filter(|run| matches!(run.status, Status::Error { .. })).collect();
    let attempts: Vec<_> = failed.iter().filter_map(|run| attribute(run, "trail.attempt")).collect();
    assert_eq!(attempts[..4], ["1", "2", "4", "8"]);
    assert!(attempts.len() <= 12, "{attempts:?}");
    assert_eq!(failed[0].status, Status::error("it is broken"));
    assert_eq!(attribute(failed[1], "trail.reason").as_deref(), Some("retry"));
    let last = runs.last().unwrap();
    assert!(attribute(last, "trail.attempt").unwrap().parse::<u32>().unwrap() > 40);
}

#[tokio::test]
async fn a_write_that_is_refused_for_ever_is_seen_and_does_not_flood() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings { refused: true, ..Settings::default() });
    let (text, context) = somebody('a');
    cluster.create("one", Some(&text)).await;
    process.until("many attempts", |it| it.trail.counters().runs >= 40).await;
    let spans = process.spans();
    let runs = named(&spans, "reconcile Head");
    let attempts: Vec<_> = runs.iter().filter_map(|run| attribute(run, "trail.attempt")).collect();
    assert_eq!(attempts[..4], ["1", "2", "4", "8"]);
    assert!(attempts.len() <= 12, "{attempts:?}");
    let Status::Error { description } = &runs[0].status else { panic!("{:?}", runs[0].status) };
    assert!(
        description.starts_with("the API server refuses: ") && description.ends_with("(Invalid, 422)"),
        "{description}"
    );
    assert!(!description.contains("Status {"), "{description}");
    assert!(spans.iter().all(|span| span.span_context.trace_id() == context.trace_id()));
    let edges = Edges::default().knows("the user", &context).of(&spans[..3]);
    assert_eq!(
        edges,
        [&*format!("{PATCH_CHILD} < apply ConfigMap"), "apply ConfigMap < reconcile Head", "reconcile Head < the user"]
    );
}

#[tokio::test]
async fn an_event_or_a_question_is_no_change() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings::default());
    cluster.create("one", Some(&somebody('a').0)).await;
    process.until_span("converge Head", 1).await;
    process.work.talks.store(true, Ordering::SeqCst);
    process.resync(20).await;
    let spans = process.spans();
    assert_eq!(named(&spans, "reconcile Head").len(), 1, "{:?}", Edges::default().of(&spans));
    let events = Api::<Published>::namespaced(cluster.client.clone(), NAMESPACE);
    assert_eq!(events.list(&ListParams::default()).await.unwrap().items.len(), 1);
    // A run that changes something keeps its reads and Events, and counts only its writes.
    process.exporter.reset();
    cluster.change("one", 2, Some(&somebody('b').0)).await;
    process.until_span("converge Head", 1).await;
    process.resync(1).await;
    let spans = process.spans();
    let run = named(&spans, "reconcile Head")[0];
    assert_eq!(attribute(run, "trail.writes").as_deref(), Some("2"), "the child and the status");
    assert_eq!(named(&spans, "PATCH /apis/events.k8s.io/v1/namespaces/{:namespace}/events/{:name}").len(), 1);
}

#[tokio::test]
async fn why_a_run_began_is_told() {
    let cluster = Cluster::start().await;
    let process = Process::start_and_watch(&cluster, Settings { busy: true, ..Settings::default() }).await;
    cluster.create("one", Some(&somebody('a').0)).await;
    let has = |it: &Process, reason: &str| {
        it.spans().iter().any(|span| attribute(span, "trail.reason").as_deref() == Some(reason))
    };
    process.until("object_updated", |it| has(it, "object_updated")).await;
    process.until("requeue", |it| has(it, "requeue")).await;
    process.resync(1).await;
    process.until("bulk", |it| has(it, "bulk")).await;
    assert_eq!(attribute(named(&process.spans(), "reconcile Head")[0], "trail.requeue").as_deref(), Some("1ms"));
}

#[tokio::test]
async fn without_tracing_everything_works_and_no_object_carries_anything() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings { off: true, ..Settings::default() });
    cluster.create("one", None).await;
    let done = kube::runtime::wait::await_condition(cluster.heads(), "one", |head: Option<&crate::head::Head>| {
        head.is_some_and(|head| head.status.is_some())
    });
    let head = done.await.unwrap().unwrap();
    process.resync(3).await;
    let child = cluster.children().get("one-child").await.unwrap();
    assert_eq!(child.owner_references()[0].name, "one");
    assert!(head.annotations().is_empty() && child.annotations().is_empty());
    assert!(process.spans().is_empty());
    assert_eq!(process.trail.counters(), TrailCounters::default());
}

fn named_other() -> ObjectMeta {
    ObjectMeta { name: Some("other".to_owned()), ..ObjectMeta::default() }
}

#[tokio::test]
async fn an_annotation_on_a_deployment_makes_its_context_not_old() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings { completes: false, ..Settings::default() });
    let head = cluster.create("one", None).await;
    let deployments = Api::<Deployment>::namespaced(cluster.client.clone(), NAMESPACE);
    let container = json!({"name": "a", "image": "a"});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap();
    let span = process.trail.follow(&head, OperandWork::Requested, SpanBuilder::from_name("work"));
    let again = Deployment { metadata: named_other(), ..deployment.clone() };
    let child = process.trail.child(&head);
    let made = child.create(&deployments, deployment).with_context(span.clone()).await.unwrap();
    let applied = child.apply(&deployments, "head", again).with_context(span).await.unwrap();
    for one in [&made, &applied] {
        assert!(one.annotations().contains_key("tracing.k8s.io/traceparent"));
        let template = &one.spec.as_ref().unwrap().template;
        assert_eq!(template.metadata.as_ref().unwrap().annotations, None, "pods would be rolled out");
    }
    let stamped = process.trail.object_context(&made).unwrap().context;
    let trace_of = |deployment: &Deployment| {
        let next = process.trail.follow(deployment, OperandWork::Requested, SpanBuilder::from_name("next"));
        next.span().span_context().trace_id()
    };
    let manager = |name: &str| PatchParams { field_manager: Some(name.to_owned()), ..PatchParams::default() };
    let annotation = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    let annotated = deployments.patch("web", &manager("kubectl-annotate"), &annotation).await.unwrap();
    assert_eq!(annotated.metadata.generation, Some(2), "as kube-apiserver counts");
    assert_eq!(trace_of(&annotated), stamped.trace_id());
    let scale = Patch::Merge(json!({"spec": {"paused": true}}));
    let changed = || async {
        let changed = deployments.patch("web", &manager("kubectl-edit"), &scale).await.unwrap();
        // Times have whole seconds: shortly after the stamp the two writes cannot be distinguished.
        trace_of(&changed) != stamped.trace_id()
    };
    let second = tokio::time::timeout(Duration::from_secs(60), async {
        while !changed().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let back = Patch::Merge(json!({"spec": {"paused": false}}));
            deployments.patch("web", &manager("kubectl-edit"), &back).await.unwrap();
        }
    });
    second.await.expect("a change of the spec makes it old");
}

#[tokio::test]
async fn with_the_sampler_off_nothing_is_recorded_and_everything_works() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings { sampler: Sampler::AlwaysOff, ..Settings::default() });
    cluster.create("one", None).await;
    let done = kube::runtime::wait::await_condition(cluster.heads(), "one", |head: Option<&crate::head::Head>| {
        head.is_some_and(|head| head.status.is_some())
    });
    done.await.unwrap();
    process.resync(10).await;
    assert!(process.spans().is_empty());
}

#[tokio::test]
async fn events_lead_to_their_trace() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings { completes: false, ..Settings::default() });
    let (text, context) = somebody('a');
    let head = cluster.create("one", Some(&text)).await;
    let events = process.trail.events(process.work.client.clone(), "head-operator");
    let span = process.trail.follow(&head, OperandWork::Requested, SpanBuilder::from_name("work"));
    let mut event = Event {
        type_: EventType::Normal,
        reason: "Worked".to_owned(),
        note: Some("on it".to_owned()),
        action: "Work".to_owned(),
        secondary: None,
    };
    for _ in 0..2 {
        events.publish(&event, &head.object_ref(&())).with_context(span.clone()).await.unwrap();
    }
    let api = Api::<Published>::namespaced(cluster.client.clone(), NAMESPACE);
    let published = api.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(published.len(), 1, "the second counts up the first");
    assert_eq!(published[0].series.as_ref().unwrap().count, 2);
    assert_eq!(published[0].annotations()[TRACE_ID_ANNOTATION], context.trace_id().to_string());
    let parent =
        kubewake_trail::context::parse(&published[0].annotations()["tracing.k8s.io/traceparent"], None).unwrap();
    assert_eq!(parent.span_id(), span.span().span_context().span_id());
    let by_note = events.clone().distinct_by_note();
    for (events, note) in std::iter::once((&events, 0)).chain((0..12).map(|note| (&by_note, note))) {
        event.note = Some(format!("at number {note}"));
        events.publish(&event, &head.object_ref(&())).with_context(span.clone()).await.unwrap();
    }
    span.span().end();
    let published = api.list(&ListParams::default()).await.unwrap().items;
    let count = |note: &str| {
        let of_note = published.iter().find(|event| event.note.as_deref() == Some(note))?;
        Some(of_note.series.as_ref().map_or(1, |series| series.count))
    };
    assert_eq!(published.len(), 10, "those with another note are others where that is asked for, in bounds");
    assert_eq!((count("on it"), count("at number 0"), count("at number 8")), (Some(3), Some(1), Some(4)));
}

#[tokio::test]
async fn what_somebody_breaks_is_repaired_in_the_open() {
    let cluster = Cluster::start().await;
    let process = Process::start(&cluster, Settings::default());
    let (text, context) = somebody('a');
    cluster.create("one", Some(&text)).await;
    process.until_span("converge Head", 1).await;
    process.resync(3).await;
    process.exporter.reset();
    let broken = json!({"data": {"size": "broken"}});
    cluster.children().patch("one-child", &PatchParams::default(), &Patch::Merge(&broken)).await.unwrap();
    process.until_span("reconcile Head", 1).await;
    process.resync(10).await;
    let spans = process.spans();
    assert_eq!(
        Edges::default().knows("the user", &context).of(&spans),
        [&*format!("{PATCH_CHILD} < apply ConfigMap"), "apply ConfigMap < reconcile Head", "reconcile Head < the user"]
    );
    let run = named(&spans, "reconcile Head")[0];
    assert_eq!(attribute(run, "trail.reason").as_deref(), Some("related_object_updated"));
    assert_eq!(attribute(run, "trail.related").as_deref(), Some("ConfigMap.v1./one-child.default"));
    assert_eq!(cluster.children().get("one-child").await.unwrap().data.unwrap()["size"], "1");
}
