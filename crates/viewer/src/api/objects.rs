//! Kubernetes objects as traces describe them, merged with the live objects of the cluster if there is one.

use axum::{
    extract::{self, Query},
    response::Response,
};
use http::StatusCode;
use serde::Serialize;

use super::{PathParts, QueryParams, error_response, json_response, parameter_errors_response, run_blocking};
use crate::{
    json::{Nanos, SpanIdJson},
    query::{
        ObjectFilter,
        objects::{
            ConvergencePhase as Progress, GenerationHistory, LiveObjects, ObjectHistory, ObjectId, ObjectIndex,
            ObjectNode, build_forest, build_tree,
        },
    },
    serve::ViewerState,
    store::TraceId,
};

/// How many objects are listed by default.
const DEFAULT_LIST_LIMIT: usize = 200;
/// Generations that are returned of one object.
const MAX_GENERATIONS: usize = 100;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectHeadJson<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    last: Option<LastSpanJson>,
    state: Progress,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LastSpanJson {
    trace_id: TraceId,
    start: Nanos,
}

#[derive(Serialize)]
struct ObjectLineJson<'a> {
    #[serde(flatten)]
    head: ObjectHeadJson<'a>,
    generations: usize,
    /// The newest generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<GenerationJson<'a>>,
}

/// An object in the list of all objects.
#[derive(Serialize)]
struct ListedObjectJson<'a> {
    #[serde(flatten)]
    line: ObjectLineJson<'a>,
    /// How many of the objects before it are its ancestors.
    depth: usize,
}

#[derive(Serialize)]
struct ObjectListJson<'a> {
    objects: Vec<ListedObjectJson<'a>>,
    total: usize,
    /// Kinds that the cluster was not queried for, because there were too many.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unasked: &'a [String],
}

#[derive(Serialize)]
struct ObjectNodeJson<'a> {
    #[serde(flatten)]
    head: ObjectHeadJson<'a>,
    generations: Vec<GenerationJson<'a>>,
    children: Vec<ObjectNodeJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationJson<'a> {
    generation: i64,
    uid: &'a str,
    trace_id: Option<TraceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<SpanIdJson>,
    start: Nanos,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    state: Progress,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    reconciles: usize,
    errors: usize,
    /// Where the state comes from, if not from a span.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
}

#[derive(Serialize)]
struct ObjectReferenceJson<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> ObjectHeadJson<'a> {
    fn new(key: &'a ObjectId, known: &'a ObjectHistory) -> Self {
        Self {
            api_version: &known.api_version,
            kind: &key.kind,
            namespace: &key.namespace,
            name: &key.name,
            uid: &known.uid,
            last: known.last.map(|(start, trace_id)| LastSpanJson { trace_id, start: Nanos(start) }),
            state: known.state(),
            live: known.live,
        }
    }
}

impl<'a> ObjectLineJson<'a> {
    fn new(key: &'a ObjectId, known: &'a ObjectHistory) -> Self {
        let change = known.newest().into_iter().next().map(|(key, generation)| GenerationJson::new(key, generation));
        Self { head: ObjectHeadJson::new(key, known), generations: known.generations.len(), change }
    }
}

impl<'a> GenerationJson<'a> {
    fn new((uid, number): &'a (String, i64), generation: &'a GenerationHistory) -> Self {
        Self {
            generation: *number,
            uid,
            trace_id: generation.trace,
            span_id: generation.span.map(SpanIdJson),
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

impl<'a> ObjectNodeJson<'a> {
    fn new(node: &ObjectNode<'a>) -> Self {
        let newest = node.known.newest().into_iter().take(MAX_GENERATIONS);
        Self {
            head: ObjectHeadJson::new(node.key, node.known),
            generations: newest.map(|(key, generation)| GenerationJson::new(key, generation)).collect(),
            children: node.children.iter().map(ObjectNodeJson::new).collect(),
        }
    }
}

pub(crate) async fn objects(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut params = QueryParams::new(pairs);
    let wanted = params.object();
    let limit = params.number("limit").unwrap_or(DEFAULT_LIST_LIMIT);
    if !params.problems.is_empty() {
        return parameter_errors_response(&params.problems);
    }
    let Some(mut objects) = index_traced_objects(&state).await else { return internal_error() };
    let mut live = fetch_live_objects(&state, wanted.namespace.as_deref(), objects.kinds_to_list(&wanted)).await;
    run_blocking(move || {
        live.keep_traces(|id| state.store.trace(id).is_some());
        objects.add_live(&live, |object| object.is_listed(&wanted));
        let all = build_forest(&objects, &wanted);
        let listed = all.iter().take(limit);
        let objects = listed
            .map(|it| ListedObjectJson { line: ObjectLineJson::new(it.key, it.known), depth: it.depth })
            .collect();
        json_response(StatusCode::OK, &ObjectListJson { objects, total: all.len(), unasked: &live.skipped_kinds })
    })
    .await
}

/// Indexes the objects that traces refer to.
async fn index_traced_objects(state: &ViewerState) -> Option<ObjectIndex> {
    let store = state.store.clone();
    let read = tokio::task::spawn_blocking(move || ObjectIndex::from_snapshot(&store.snapshot())).await;
    read.inspect_err(|error| tracing::error!(%error, "a query failed")).ok()
}

/// Fetches the objects of these kinds from the cluster, if there is one.
async fn fetch_live_objects(state: &ViewerState, namespace: Option<&str>, kinds: Vec<(String, String)>) -> LiveObjects {
    match &state.cluster {
        Some(cluster) => cluster.list_objects(namespace, kinds).await,
        None => LiveObjects::default(),
    }
}

fn internal_error() -> Response {
    error_response(StatusCode::INTERNAL_SERVER_ERROR, "the query failed; see the log of the viewer")
}

#[derive(Serialize)]
struct ObjectDetailJson<'a> {
    object: ObjectLineJson<'a>,
    parents: Vec<ObjectReferenceJson<'a>>,
    tree: ObjectNodeJson<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unasked: &'a [String],
}

pub(crate) async fn object(
    extract::State(state): extract::State<ViewerState>,
    PathParts((kind, namespace, name)): PathParts<(String, String, String)>,
) -> Response {
    let namespace = if namespace == "-" { String::new() } else { namespace };
    let wanted = ObjectFilter { kind: Some(kind), namespace: Some(namespace.clone()), name: Some(name) };
    let Some(mut objects) = index_traced_objects(&state).await else { return internal_error() };
    // Dependents of a cluster-scoped object may be in any namespace.
    let within = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let mut live = fetch_live_objects(&state, within, objects.kinds_to_ask(&wanted)).await;
    run_blocking(move || {
        live.keep_traces(|id| state.store.trace(id).is_some());
        objects.add_live(&live, |object| wanted.matches_key(&object.key));
        object_response(&objects, &wanted, &live.skipped_kinds)
    })
    .await
}

fn object_response(objects: &ObjectIndex, wanted: &ObjectFilter, unasked: &[String]) -> Response {
    let Some((key, known)) = objects.find(wanted) else {
        return error_response(
            StatusCode::NOT_FOUND,
            "object not found, neither in the stored traces nor in the cluster",
        );
    };
    let parents = known.parents.iter();
    let whole = ObjectDetailJson {
        object: ObjectLineJson::new(key, known),
        parents: parents
            .map(|ObjectId { kind, namespace, name }| ObjectReferenceJson { kind, namespace, name })
            .collect(),
        tree: ObjectNodeJson::new(&build_tree(objects, key, known)),
        unasked,
    };
    json_response(StatusCode::OK, &whole)
}
