//! The index of objects, built from spans as `trail` writes them.

use super::*;
use crate::{
    query::ObjectFilter,
    store::{StoreLimits, TraceStore},
    testing::{SpanBuilder, request},
};

const HEAD: (&str, &str) = ("Head", "h");
const CHILD: (&str, &str) = ("ChildA", "c");

fn store(spans: Vec<SpanBuilder>) -> ObjectIndex {
    let store = TraceStore::new(StoreLimits::default());
    store.add(crate::store::GroupedSpans::parse(&request("operator", spans)), 1);
    ObjectIndex::from_snapshot(&store.snapshot())
}

fn about(id: u64, name: &str, (kind, object): (&str, &str), generation: i64) -> SpanBuilder {
    SpanBuilder::new(1, id, name)
        .text("k8s.object.kind", kind)
        .text("k8s.object.name", object)
        .text("k8s.namespace.name", "default")
        .text("k8s.object.uid", &format!("uid-of-{object}"))
        .int("k8s.object.generation", generation)
}

fn find<'a>(objects: &'a ObjectIndex, kind: &str) -> (&'a ObjectId, &'a ObjectHistory) {
    objects.find(&ObjectFilter { kind: Some(kind.to_owned()), ..ObjectFilter::default() }).unwrap()
}

#[test]
fn what_a_run_applies_belongs_to_its_object() {
    let objects = store(vec![
        about(1, "reconcile Head", HEAD, 1).with_times(10, 20),
        about(2, "apply ChildA", CHILD, 1).with_parent(1).with_times(11, 12),
        about(3, "reconcile ChildA", CHILD, 1).with_parent(2).with_times(13, 14),
        SpanBuilder::new(1, 4, "a step").with_parent(3).with_times(13, 14),
        about(5, "apply Deployment", ("Deployment", "c"), 1).with_parent(4).with_times(13, 14),
    ]);
    let (key, known) = find(&objects, "heads");
    let tree = build_tree(&objects, key, known);
    assert_eq!(tree.children.len(), 1);
    assert_eq!(tree.children[0].key.kind, "ChildA");
    assert_eq!(tree.children[0].children[0].key.kind, "Deployment");
    assert_eq!(find(&objects, "deployment").1.parents.first().unwrap().kind, "ChildA");
}

#[test]
fn a_generation_is_converging_until_it_failed_or_converged() {
    let run = |id, generation| about(id, "reconcile Head", HEAD, generation);
    let objects = store(vec![
        about(1, "converge Head", HEAD, 1).with_times(10, 25),
        run(2, 1).with_times(11, 12).error("not yet"),
        run(3, 1).with_times(20, 21),
        run(4, 2).with_times(30, 31),
        run(5, 2).with_times(32, 33).error("forbidden"),
    ]);
    let (_, head) = find(&objects, "Head");
    assert_eq!(head.state(), ConvergencePhase::Failed);
    let newest = head.newest();
    let [(second, later), (first, before)] = newest.as_slice() else { panic!("{newest:?}") };
    assert_eq!((second.1, first.1), (2, 1));
    assert_eq!(
        (later.state(), later.message(), later.reconciles, later.errors),
        (ConvergencePhase::Failed, Some("forbidden"), 2, 1)
    );
    assert_eq!(
        (before.state(), before.message(), before.duration, before.span),
        (ConvergencePhase::Converged, None, Some(15), Some(1))
    );
    let working = store(vec![run(1, 1).with_times(1, 2).error("no"), run(2, 1).with_times(3, 4)]);
    assert_eq!(find(&working, "Head").1.state(), ConvergencePhase::Converging);
}

#[test]
fn generations_have_one_order_whatever_their_times() {
    let at = |uid: &str, number: i64, start: u64| {
        ((uid.to_owned(), number), GenerationHistory { start, ..GenerationHistory::default() })
    };
    let order = |all: Vec<_>| {
        let known = ObjectHistory { generations: all.into_iter().collect(), ..ObjectHistory::default() };
        known.newest().iter().map(|((uid, number), _)| format!("{uid}{number}")).collect::<Vec<_>>()
    };
    // By number a2 is before a1, by time a1 before b1 and b1 before a2.
    assert_eq!(order(vec![at("a", 2, 100), at("a", 1, 300), at("b", 1, 200)]), ["a2", "a1", "b1"]);
    assert_eq!(order(vec![at("a", 2, 100), at("b", 1, 200)]), ["b1", "a2"], "it was made again");
    let odd = |number: i64| at(&format!("{:02}-", number % 40), number / 40, (number * 7919 % 101).unsigned_abs());
    let all = order((0..160).map(odd).collect());
    for uid in 0..40 {
        let numbers = all.iter().filter_map(|it| it.strip_prefix(&format!("{uid:02}-"))).collect::<Vec<_>>();
        assert_eq!(numbers, ["3", "2", "1", "0"], "{uid}: {all:?}");
    }
}

#[test]
fn objects_that_own_each_other_are_shown_once() {
    let objects = store(vec![
        about(1, "reconcile Head", HEAD, 1).with_times(10, 20),
        about(2, "apply ChildA", CHILD, 1).with_parent(1).with_times(11, 12),
        about(3, "reconcile ChildA", CHILD, 1).with_parent(2).with_times(13, 14),
        about(4, "apply Head", HEAD, 1).with_parent(3).with_times(13, 14),
    ]);
    let (key, known) = find(&objects, "Head");
    let tree = build_tree(&objects, key, known);
    assert!(tree.children[0].children.is_empty());
}

#[test]
fn an_object_that_cannot_be_written_has_failed() {
    let objects = store(vec![
        about(1, "reconcile Head", HEAD, 1).with_times(10, 20),
        about(2, "apply ChildA", CHILD, 1).with_parent(1).with_times(11, 12).error("refused"),
    ]);
    assert_eq!(find(&objects, "ChildA").1.state(), ConvergencePhase::Failed);
}

fn version(kind: &str) -> &str {
    if kind == "Pod" { "v1" } else { "apps/v1" }
}

fn seen(version: &str, kind: &str, namespace: Option<&str>) -> ListedKind {
    ListedKind { api_version: version.to_owned(), kind: kind.to_owned(), namespace: namespace.map(str::to_owned) }
}

#[test]
fn only_what_would_have_been_seen_is_gone() {
    let backup = |id, name: &str, version: &str| {
        about(id, "reconcile Backup", ("Backup", name), 1)
            .text("k8s.object.api_version", version)
            .with_times(id, id + 1)
    };
    let elsewhere = SpanBuilder::new(1, 9, "reconcile Backup").text("k8s.namespace.name", "elsewhere");
    let elsewhere = elsewhere.text("k8s.object.kind", "Backup").text("k8s.object.name", "there");
    let mut objects = store(vec![
        backup(1, "gone", "one.io/v1"),
        backup(2, "of another group", "two.io/v1"),
        backup(3, "both", "two.io/v1"),
        backup(4, "of no group", ""),
        elsewhere.text("k8s.object.api_version", "one.io/v1").with_times(5, 6),
    ]);
    let key = ObjectId { kind: "Backup".into(), namespace: "default".into(), name: "both".into() };
    let live = LiveObject { key, api_version: "one.io/v2".into(), uid: "u".into(), owner: None, stamp: None };
    let seen = vec![seen("one.io/v2", "Backup", Some("default"))];
    objects.add_live(&LiveObjects { listed_kinds: seen, objects: vec![live], ..LiveObjects::default() }, |_| false);
    let all = objects.matching(&ObjectFilter::default());
    let mut told: Vec<_> = all.iter().map(|(key, known)| (key.name.as_str(), known.live)).collect();
    told.sort_unstable();
    let expected =
        [("both", None), ("gone", Some(false)), ("of another group", None), ("of no group", None), ("there", None)];
    assert_eq!(told, expected);
}

#[test]
fn the_cluster_adds_pods_and_who_is_still_there() {
    let mut objects = store(vec![
        about(1, "reconcile ChildA", CHILD, 1).text("k8s.object.api_version", "demo/v1").with_times(10, 20),
        about(2, "apply Deployment", ("Deployment", "d"), 1)
            .text("k8s.object.api_version", "apps/v1")
            .with_parent(1)
            .with_times(11, 12),
        about(3, "apply Deployment", ("Deployment", "gone"), 1)
            .text("k8s.object.api_version", "apps/v1")
            .with_parent(1)
            .with_times(11, 12),
    ]);
    let wanted = ObjectFilter { kind: Some("childas".into()), ..ObjectFilter::default() };
    let kinds: Vec<_> = objects.kinds_to_ask(&wanted).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["Deployment", "ReplicaSet", "Pod", "ChildA"]);
    let key = |kind: &str, name: &str| ObjectId { kind: kind.into(), namespace: "default".into(), name: name.into() };
    let live = |kind: &str, name: &str, owner: Option<ObjectId>| LiveObject {
        key: key(kind, name),
        api_version: version(kind).into(),
        uid: name.into(),
        owner,
        stamp: None,
    };
    objects.add_live(
        &LiveObjects {
            listed_kinds: vec![seen("apps/v1", "Deployment", Some("default")), seen("v1", "Pod", Some("default"))],
            objects: vec![
                live("Pod", "p", Some(key("ReplicaSet", "r"))),
                live("Pod", "stranger", Some(key("ReplicaSet", "other"))),
                live("ReplicaSet", "r", Some(key("Deployment", "d"))),
                live("Deployment", "d", Some(key("ChildA", "c"))),
            ],
            ..LiveObjects::default()
        },
        |object| wanted.matches_key(&object.key),
    );
    let (key, known) = find(&objects, "ChildA");
    assert_eq!(known.live, None, "its kind was not asked for");
    let tree = build_tree(&objects, key, known);
    let deployment = tree.children.iter().find(|child| child.key.name == "d").unwrap();
    assert_eq!((deployment.known.live, deployment.children[0].key.name.as_str()), (Some(true), "p"));
    assert_eq!(tree.children.iter().find(|child| child.key.name == "gone").unwrap().known.live, Some(false));
    assert!(
        objects.get(&ObjectId { kind: "Pod".into(), namespace: "default".into(), name: "stranger".into() }).is_none()
    );
}

#[test]
fn a_replica_set_that_is_asked_for_has_its_pods() {
    let key = |kind: &str, name: &str| ObjectId { kind: kind.into(), namespace: "default".into(), name: name.into() };
    let live = |kind: &str, name: &str, owner: ObjectId| {
        let start = 1;
        let trace = Some(TraceId([1; 16]));
        let stamp =
            ObjectStamp { generation: 1, start, duration: None, state: ConvergencePhase::Unknown, trace, span: None };
        let api_version = version(kind).into();
        let uid = name.into();
        LiveObject { key: key(kind, name), api_version, uid, owner: Some(owner), stamp: Some(stamp) }
    };
    let cluster = LiveObjects {
        objects: vec![
            live("Pod", "p", key("ReplicaSet", "r")),
            live("ReplicaSet", "r", key("Deployment", "d")),
            live("ReplicaSet", "other", key("Deployment", "d")),
        ],
        ..LiveObjects::default()
    };
    let told = || store(vec![about(1, "apply Deployment", ("Deployment", "d"), 1).with_times(11, 12)]);
    let wanted =
        ObjectFilter { kind: Some("replicasets".into()), namespace: Some("default".into()), name: Some("r".into()) };
    let mut objects = told();
    objects.add_live(&cluster, |object| wanted.matches_key(&object.key));
    let (found, known) = objects.find(&wanted).unwrap();
    assert_eq!(build_tree(&objects, found, known).children[0].key, &key("Pod", "p"));
    assert_eq!(known.parents, BTreeSet::from([key("Deployment", "d")]));
    let mut objects = told();
    objects.add_live(&cluster, |object| object.is_listed(&wanted));
    assert_eq!(lines(&objects, &wanted), ["ReplicaSet/r"]);
    let mut objects = told();
    let all = ObjectFilter::default();
    objects.add_live(&cluster, |object| object.is_listed(&all));
    assert_eq!(lines(&objects, &all), ["Deployment/d", "  Pod/p"], "else it is passed over");
}

#[test]
fn what_belongs_to_an_object_without_a_namespace_is_below_it() {
    let pipeline = SpanBuilder::new(1, 1, "reconcile TracePipeline").text("k8s.object.kind", "TracePipeline");
    let mut objects = store(vec![pipeline.text("k8s.object.name", "default").with_times(1, 2)]);
    let key = |kind: &str, name: &str| ObjectId { kind: kind.into(), namespace: "system".into(), name: name.into() };
    let live = |kind: &str, name: &str, owner: ObjectId| LiveObject {
        key: key(kind, name),
        api_version: version(kind).into(),
        uid: name.into(),
        owner: Some(owner),
        stamp: None,
    };
    let owned = live("Deployment", "gateway", key("TracePipeline", "default"));
    let other = live("Deployment", "other", key("TracePipeline", "other"));
    let pod = live("Pod", "gateway-1", key("Deployment", "gateway"));
    objects.add_live(&LiveObjects { objects: vec![pod, owned, other], ..LiveObjects::default() }, |_| false);
    assert_eq!(
        lines(&objects, &ObjectFilter::default()),
        ["TracePipeline/default", "  Deployment/gateway", "    Pod/gateway-1"]
    );
}

#[test]
fn a_pod_that_no_span_names_has_the_trace_of_its_annotation() {
    let mut objects = store(vec![
        about(1, "reconcile ChildA", CHILD, 1).with_times(10, 20),
        about(2, "apply Deployment", ("Deployment", "d"), 1)
            .text("k8s.object.api_version", "apps/v1")
            .with_parent(1)
            .with_times(11, 12),
    ]);
    let key = |kind: &str, name: &str| ObjectId { kind: kind.into(), namespace: "default".into(), name: name.into() };
    let stamp = |trace| ObjectStamp {
        generation: 1,
        start: 13,
        duration: Some(5),
        state: ConvergencePhase::Converged,
        trace: Some(TraceId([trace; 16])),
        span: Some(2),
    };
    let live = |key: ObjectId, owner: ObjectId, trace| {
        let api_version = "v1".into();
        let uid = format!("uid-of-{}", key.name);
        LiveObject { key, api_version, uid, owner: Some(owner), stamp: Some(stamp(trace)) }
    };
    let wanted = ObjectFilter { kind: Some("pods".into()), namespace: Some("default".into()), name: Some("p".into()) };
    let asked: Vec<_> = objects.kinds_to_ask(&wanted).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(asked, ["Pod", "ReplicaSet"]);
    let mut cluster = LiveObjects {
        listed_kinds: vec![seen("v1", "Pod", Some("default"))],
        objects: vec![
            live(key("Pod", "p"), key("ReplicaSet", "r"), 1),
            live(key("Pod", "old"), key("ReplicaSet", "r"), 9),
            live(key("Pod", "stranger"), key("ReplicaSet", "other"), 1),
            live(key("ReplicaSet", "r"), key("Deployment", "d"), 1),
            live(key("ChildA", "c"), key("Head", "h"), 1),
        ],
        ..LiveObjects::default()
    };
    cluster.keep_traces(|id| id == TraceId([1; 16]));
    objects.add_live(&cluster, |object| wanted.matches_key(&object.key));
    let (found, pod) = objects.find(&wanted).unwrap();
    assert_eq!(
        (found, pod.state(), pod.last),
        (&key("Pod", "p"), ConvergencePhase::Converged, Some((13, TraceId([1; 16]))))
    );
    let [(_, generation)] = pod.newest()[..] else { panic!("{pod:?}") };
    assert_eq!(
        (generation.duration, generation.span, generation.cluster),
        (Some(5), Some(2), Some(ConvergencePhase::Converged))
    );
    assert_eq!(pod.parents, BTreeSet::from([key("Deployment", "d")]));
    let old = objects.get(&key("Pod", "old")).unwrap();
    assert_eq!((old.newest()[0].1.trace, old.last), (None, None), "its trace is not in the store");
    assert!(objects.get(&key("Pod", "stranger")).is_none(), "nobody asked for it");
    // The stamp adds nothing to a generation that spans describe.
    assert_eq!(objects.get(&key("ChildA", "c")).unwrap().newest()[0].1.cluster, None);
}

#[test]
fn a_write_that_failed_counts_more_than_what_the_cluster_has() {
    let mut objects = store(vec![about(1, "apply ChildA", CHILD, 2).with_times(11, 12).error("refused")]);
    let key = ObjectId { kind: "ChildA".into(), namespace: "default".into(), name: "c".into() };
    let stamp = ObjectStamp {
        generation: 1,
        start: 5,
        duration: Some(1),
        state: ConvergencePhase::Converged,
        trace: None,
        span: None,
    };
    let live = LiveObject { key, api_version: "v1".into(), uid: "u".into(), owner: None, stamp: Some(stamp) };
    objects.add_live(&LiveObjects { objects: vec![live], ..LiveObjects::default() }, |_| true);
    assert_eq!(find(&objects, "ChildA").1.state(), ConvergencePhase::Failed);
}

fn lines(objects: &ObjectIndex, wanted: &ObjectFilter) -> Vec<String> {
    let line = |it: &PlacedObject<'_>| format!("{}{}/{}", "  ".repeat(it.depth), it.key.kind, it.key.name);
    build_forest(objects, wanted).iter().map(line).collect()
}

#[test]
fn the_list_shows_each_object_below_what_it_belongs_to() {
    let of = |span: SpanBuilder, version: &str| span.text("k8s.object.api_version", version);
    let mut objects = store(vec![
        of(about(1, "reconcile Head", HEAD, 1), "demo/v1").with_times(10, 20),
        about(2, "apply ChildA", CHILD, 1).with_parent(1).with_times(11, 12),
        about(3, "reconcile ChildA", CHILD, 1).with_parent(2).with_times(13, 14),
        of(about(4, "apply Deployment", ("Deployment", "d"), 1), "apps/v1").with_parent(3).with_times(13, 14),
        about(5, "reconcile Head", ("Head", "later"), 1).with_times(15, 16),
    ]);
    let kinds: Vec<_> = objects.kinds_to_list(&ObjectFilter::default()).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod", "Head"]);
    let kinds = |kind: &str| {
        let wanted = ObjectFilter { kind: Some(kind.into()), ..ObjectFilter::default() };
        objects.kinds_to_list(&wanted).into_iter().map(|(_, kind)| kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds("deployments"), ["Deployment", "Head"], "with its owners, as far as they can be asked for");
    assert_eq!(kinds("po"), [""; 0]);
    assert_eq!(kinds("job"), ["Job"]);
    assert_eq!(kinds("Pod"), ["Pod", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Job", "Head"]);
    let key = |kind: &str, name: &str| ObjectId { kind: kind.into(), namespace: "default".into(), name: name.into() };
    let live = |kind: &str, name: &str, owner: Option<ObjectId>, trace: Option<u8>| {
        let trace = trace.map(|trace| TraceId([trace; 16]));
        let start = if kind == "Pod" { 21 } else { 20 };
        let stamp =
            ObjectStamp { generation: 1, start, duration: None, state: ConvergencePhase::Unknown, trace, span: None };
        let api_version = version(kind).into();
        let uid = name.into();
        LiveObject { key: key(kind, name), api_version, uid, owner, stamp: Some(stamp) }
    };
    let mut cluster = LiveObjects {
        objects: vec![
            live("Pod", "p", Some(key("ReplicaSet", "r")), Some(1)),
            live("ReplicaSet", "r", Some(key("Deployment", "d")), Some(1)),
            live("Deployment", "traced", None, Some(1)),
            live("Deployment", "of a trace that is gone", None, Some(9)),
            live("Pod", "stranger", None, None),
        ],
        ..LiveObjects::default()
    };
    cluster.keep_traces(|id| id == TraceId([1; 16]));
    objects.add_live(&cluster, |object| object.is_listed(&ObjectFilter::default()));
    // The pod makes its family the most recently active.
    let all = ["Head/h", "  ChildA/c", "    Deployment/d", "      Pod/p", "Deployment/traced", "Head/later"];
    assert_eq!(lines(&objects, &ObjectFilter::default()), all);
    let pods = ObjectFilter { kind: Some("pods".into()), ..ObjectFilter::default() };
    assert_eq!(lines(&objects, &pods), ["Pod/p"], "what is not wanted is not above it");
}

#[test]
fn objects_that_own_each_other_are_listed_once() {
    let objects = store(vec![
        about(1, "reconcile Head", HEAD, 1).with_times(10, 20),
        about(2, "apply ChildA", CHILD, 1).with_parent(1).with_times(11, 12),
        about(3, "reconcile ChildA", CHILD, 1).with_parent(2).with_times(13, 14),
        about(4, "apply Head", HEAD, 1).with_parent(3).with_times(14, 15),
    ]);
    assert_eq!(lines(&objects, &ObjectFilter::default()), ["Head/h", "  ChildA/c"]);
}

#[test]
fn however_many_kinds_there_are_workloads_and_pods_are_asked_for_first() {
    let of_kind = |number: u64| {
        let kind = format!("Kind{number:02}");
        let span =
            about(number, &format!("apply {kind}"), (&kind, "x"), 1).with_parent(99).with_times(number, number + 1);
        span.text("k8s.object.api_version", "a/v1")
    };
    let mut spans: Vec<_> = (1..=30).map(of_kind).collect();
    let deployment = about(98, "apply Deployment", ("Deployment", "d"), 1).with_parent(99).with_times(1, 2);
    spans.extend([about(99, "reconcile Head", HEAD, 1).with_times(1, 99), deployment]);
    let objects = store(spans);
    let names = |kinds: Vec<(String, String)>| kinds.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>();
    let all = names(objects.kinds_to_list(&ObjectFilter::default()));
    assert_eq!(all.len(), 36);
    assert_eq!(all[..6], ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod"]);
    assert_eq!(all[6..8], ["Kind30", "Kind29"], "what was told of last comes next");
    let head = ObjectFilter { kind: Some("Head".into()), ..ObjectFilter::default() };
    assert_eq!(names(objects.kinds_to_ask(&head))[..2], ["ReplicaSet", "Pod"]);
}
