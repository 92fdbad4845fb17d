//! Kubernetes objects, as traces tell of them, and the cluster where there is one.

use axum::{
    extract::{self, Query},
    response::Response,
};
use http::StatusCode;
use serde::Serialize;

use super::{Params, Parts, aside, bad_parameters, json, refuse};
use crate::{
    json::{Nanos, SpanId},
    query::{
        ObjectFilter,
        objects::{Generation, Key, Known, Live, Node, Objects, State as Progress, forest, tree},
    },
    serve::State,
    store::TraceId,
};

/// How many objects are listed unless fewer are wanted.
const LISTED: usize = 200;
/// Generations that are shown of one object.
const GENERATIONS: usize = 100;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    last: Option<Last>,
    state: Progress,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Last {
    trace_id: TraceId,
    start: Nanos,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    generations: usize,
    /// The newest of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<GenerationJson<'a>>,
}

/// An object in the list of all.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    /// How many of those before it it is below.
    depth: usize,
}

#[derive(Serialize)]
struct List<'a> {
    objects: Vec<Listed<'a>>,
    total: usize,
    /// Kinds that the cluster was not asked for, as there were too many.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unasked: &'a [String],
}

#[derive(Serialize)]
struct NodeJson<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    generations: Vec<GenerationJson<'a>>,
    children: Vec<NodeJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationJson<'a> {
    generation: i64,
    uid: &'a str,
    trace_id: Option<TraceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<SpanId>,
    start: Nanos,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    state: Progress,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    reconciles: usize,
    errors: usize,
    /// Who says so, if no span does.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
}

#[derive(Serialize)]
struct Reference<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Head<'a> {
    fn new(key: &'a Key, known: &'a Known) -> Self {
        Self {
            api_version: &known.api_version,
            kind: &key.kind,
            namespace: &key.namespace,
            name: &key.name,
            uid: &known.uid,
            last: known.last.map(|(start, trace_id)| Last { trace_id, start: Nanos(start) }),
            state: known.state(),
            live: known.live,
        }
    }
}

impl<'a> Line<'a> {
    fn new(key: &'a Key, known: &'a Known) -> Self {
        let change = known.newest().into_iter().next().map(|(key, generation)| GenerationJson::new(key, generation));
        Self { head: Head::new(key, known), generations: known.generations.len(), change }
    }
}

impl<'a> GenerationJson<'a> {
    fn new((uid, number): &'a (String, i64), generation: &'a Generation) -> Self {
        Self {
            generation: *number,
            uid,
            trace_id: generation.trace,
            span_id: generation.span.map(SpanId),
            start: Nanos(generation.start),
            duration: generation.duration,
            state: generation.state(),
            message: generation.message(),
            reconciles: generation.reconciles,
            errors: generation.errors,
            source: generation.cluster.map(|_| "cluster"),
        }
    }
}

impl<'a> NodeJson<'a> {
    fn new(node: &Node<'a>) -> Self {
        let newest = node.known.newest().into_iter().take(GENERATIONS);
        Self {
            head: Head::new(node.key, node.known),
            generations: newest.map(|(key, generation)| GenerationJson::new(key, generation)).collect(),
            children: node.children.iter().map(NodeJson::new).collect(),
        }
    }
}

pub(crate) async fn objects(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut params = Params::new(pairs);
    let (wanted, limit) = (params.object(), params.number("limit").unwrap_or(LISTED));
    if !params.problems.is_empty() {
        return bad_parameters(&params.problems);
    }
    let Some(mut objects) = told(&state).await else { return failed() };
    let mut live = live(&state, wanted.namespace.as_deref(), objects.kinds_of_all(&wanted)).await;
    aside(move || {
        live.keep_traces(|id| state.store.trace(id).is_some());
        objects.add_live(&live, |object| object.is_listed(&wanted));
        let all = forest(&objects, &wanted);
        let listed = all.iter().take(limit);
        let objects = listed.map(|it| Listed { line: Line::new(it.key, it.known), depth: it.depth }).collect();
        json(StatusCode::OK, &List { objects, total: all.len(), unasked: &live.unasked })
    })
    .await
}

/// The objects that traces tell of.
async fn told(state: &State) -> Option<Objects> {
    let store = state.store.clone();
    let read = tokio::task::spawn_blocking(move || Objects::of(&store.snapshot())).await;
    read.inspect_err(|error| tracing::error!(%error, "a query failed")).ok()
}

/// What the cluster has of these kinds, if there is one.
async fn live(state: &State, namespace: Option<&str>, kinds: Vec<(String, String)>) -> Live {
    match &state.cluster {
        Some(cluster) => cluster.objects(namespace, kinds).await,
        None => Live::default(),
    }
}

fn failed() -> Response {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, "the query failed; the log says why")
}

#[derive(Serialize)]
struct Whole<'a> {
    object: Line<'a>,
    parents: Vec<Reference<'a>>,
    tree: NodeJson<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unasked: &'a [String],
}

pub(crate) async fn object(
    extract::State(state): extract::State<State>,
    Parts((kind, namespace, name)): Parts<(String, String, String)>,
) -> Response {
    let namespace = if namespace == "-" { String::new() } else { namespace };
    let wanted = ObjectFilter { kind: Some(kind), namespace: Some(namespace.clone()), name: Some(name) };
    let Some(mut objects) = told(&state).await else { return failed() };
    // What belongs to an object without a namespace may be in any.
    let within = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let mut live = live(&state, within, objects.kinds_to_ask(&wanted)).await;
    aside(move || {
        live.keep_traces(|id| state.store.trace(id).is_some());
        objects.add_live(&live, |object| wanted.matches_key(&object.key));
        show(&objects, &wanted, &live.unasked)
    })
    .await
}

fn show(objects: &Objects, wanted: &ObjectFilter, unasked: &[String]) -> Response {
    let Some((key, known)) = objects.find(wanted) else {
        return refuse(StatusCode::NOT_FOUND, "no trace tells of this object, and no cluster that is known has it");
    };
    let parents = known.parents.iter();
    let whole = Whole {
        object: Line::new(key, known),
        parents: parents.map(|Key { kind, namespace, name }| Reference { kind, namespace, name }).collect(),
        tree: NodeJson::new(&tree(objects, key, known)),
        unasked,
    };
    json(StatusCode::OK, &whole)
}
