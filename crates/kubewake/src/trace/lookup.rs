//! Looks up the trace of an object.

use anyhow::{Context, bail};
use serde::Deserialize;

use super::nanoseconds;
use crate::{
    http_client::{JsonHttpClient, percent_encode},
    output::text::sanitize,
};

/// Objects that a message lists when none matches.
const MAX_NAMED_OBJECTS: usize = 8;

/// An object as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectQuery {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GenerationDocument {
    pub(super) generation: i64,
    /// Uid of the object. Empty if no span names it.
    pub(super) uid: String,
    /// Start in nanoseconds since 1970.
    #[serde(deserialize_with = "nanoseconds")]
    pub(super) start: u64,
    /// None if no span was recorded.
    pub(super) trace_id: Option<String>,
    /// `converged`, `converging`, `failed`, or `unknown`.
    pub(super) state: String,
    /// `cluster` if the generation is known from the viewer's cluster only, and not from spans.
    pub(super) source: Option<String>,
}

impl GenerationDocument {
    /// Whether no further spans are expected.
    pub(super) fn is_finished(&self) -> bool {
        matches!(self.state.as_str(), "converged" | "failed")
    }

    /// Whether the viewer has the generation from its cluster, without a trace yet.
    pub(super) fn lacks_trace(&self) -> bool {
        self.source.as_deref() == Some("cluster") && self.trace_id.is_none()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectsDocument {
    objects: Vec<ObjectDocument>,
}

/// An object in the viewer's response.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ObjectDocument {
    /// Empty if no span names it.
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    last: Option<LastSpanDocument>,
}

/// The last reference to an object in spans.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LastSpanDocument {
    trace_id: String,
    #[serde(deserialize_with = "nanoseconds")]
    start: u64,
}

impl LastSpanDocument {
    /// The last trace, unless that of the newest generation is newer: the first spans of a generation that is
    /// known from the cluster may name no object.
    fn or_newer_trace_id(self, newest: Option<&GenerationDocument>) -> String {
        let newer = newest.filter(|it| it.start > self.start).and_then(|it| it.trace_id.clone());
        newer.unwrap_or(self.trace_id)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectTreeDocument {
    tree: ObjectNodeDocument,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectNodeDocument {
    generations: Vec<GenerationDocument>,
}

/// The trace of an object: of one generation, or the latest.
pub(super) async fn find_trace_id(
    web: &JsonHttpClient,
    url: &str,
    object: &ObjectQuery,
    generation: Option<i64>,
) -> anyhow::Result<String> {
    let known = fetch_objects(web, url, object).await?;
    let Some(one) = select_single(object, known)? else { return explain_not_found(web, url, object).await };
    let generations = fetch_generations(web, url, &one).await?;
    let Some(wanted) = generation else {
        return Ok(one.last.unwrap_or_default().or_newer_trace_id(generations.first()));
    };
    let there: Vec<String> = generations.iter().map(|it| it.generation.to_string()).collect();
    let there = if there.is_empty() {
        "no generation is known".to_owned()
    } else {
        format!("known generations: {}", there.join(", "))
    };
    let found = generations.into_iter().find(|it| it.generation == wanted).and_then(|it| it.trace_id);
    found.with_context(|| {
        format!("the viewer has no trace of generation {wanted} of {}/{}; {there}", object.kind, object.name)
    })
}

/// An object with its latest generation, if there is one.
pub(super) async fn find_latest_generation(
    web: &JsonHttpClient,
    url: &str,
    object: &ObjectQuery,
) -> anyhow::Result<Option<(ObjectDocument, GenerationDocument)>> {
    let Some(one) = select_single(object, fetch_objects(web, url, object).await?)? else { return Ok(None) };
    let generations = fetch_generations(web, url, &one).await?;
    Ok(generations.into_iter().next().map(|latest| (one, latest)))
}

/// Whether no span refers to the object. A failed query counts as known: the error is reported when the trace
/// is looked up.
pub(super) async fn is_unknown_object(web: &JsonHttpClient, url: &str, object: &ObjectQuery) -> bool {
    fetch_objects(web, url, object).await.is_ok_and(|known| known.is_empty())
}

async fn fetch_objects(web: &JsonHttpClient, url: &str, object: &ObjectQuery) -> anyhow::Result<Vec<ObjectDocument>> {
    let namespace =
        object.namespace.as_ref().map(|it| format!("&namespace={}", percent_encode(it))).unwrap_or_default();
    let query =
        format!("kind={}&name={}{namespace}&limit=100", percent_encode(&object.kind), percent_encode(&object.name));
    let answer: ObjectsDocument = web.get(&format!("{url}/api/v1/objects?{query}")).await.with_context(|| {
        format!("failed to query the viewer at {url} (start one with kubewake up or kubewake viewer, or name one with --viewer URL)")
    })?;
    Ok(answer.objects.into_iter().filter(|known| known.last.is_some()).collect())
}

async fn fetch_generations(
    web: &JsonHttpClient,
    url: &str,
    one: &ObjectDocument,
) -> anyhow::Result<Vec<GenerationDocument>> {
    let namespace = if one.namespace.is_empty() { "-" } else { &one.namespace };
    let path = [&one.kind, namespace, &one.name].map(percent_encode).join("/");
    let tree: ObjectTreeDocument = web
        .get(&format!("{url}/api/v1/objects/{path}"))
        .await
        .context("failed to get the generations of the object from the viewer")?;
    Ok(tree.tree.generations)
}

/// The only match; fails if there are several.
fn select_single(object: &ObjectQuery, mut known: Vec<ObjectDocument>) -> anyhow::Result<Option<ObjectDocument>> {
    if known.len() > 1 {
        let names: Vec<String> = known.iter().take(MAX_NAMED_OBJECTS).map(kubectl_name).collect();
        bail!(
            "several objects match {}/{}: {}; choose one with --namespace",
            object.kind,
            object.name,
            names.join(", ")
        );
    }
    Ok(known.pop())
}

/// In kubectl's notation.
fn kubectl_name(known: &ObjectDocument) -> String {
    let namespace =
        if known.namespace.is_empty() { String::new() } else { format!(" -n {}", sanitize(&known.namespace)) };
    format!("{}/{}{namespace}", sanitize(&known.kind), sanitize(&known.name))
}

/// Fails with a message that lists similar objects.
async fn explain_not_found(web: &JsonHttpClient, url: &str, object: &ObjectQuery) -> anyhow::Result<String> {
    let all: ObjectsDocument =
        web.get(&format!("{url}/api/v1/objects?limit={MAX_NAMED_OBJECTS}")).await.unwrap_or_default();
    let names: Vec<String> = all.objects.iter().map(kubectl_name).collect();
    let there = if names.is_empty() {
        "no span names an object: docs/tracing-an-operator.md shows how to trace objects".to_owned()
    } else {
        format!("the viewer has {}", names.join(", "))
    };
    let at = object.namespace.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
    bail!("no trace of {}/{}{at} at {url}; {there}", object.kind, object.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> ObjectQuery {
        ObjectQuery { kind: "head".to_owned(), name: "a".to_owned(), namespace: None }
    }

    fn known(namespace: &str) -> ObjectDocument {
        ObjectDocument {
            kind: "Head".to_owned(),
            namespace: namespace.to_owned(),
            name: "a".to_owned(),
            ..ObjectDocument::default()
        }
    }

    #[test]
    fn the_trace_of_a_change_that_only_the_cluster_tells_of_is_the_latest_once_it_is_there() {
        let latest = |start: u64, trace: Option<&str>| {
            let generation = serde_json::json!({"generation": 2, "start": start.to_string(), "traceId": trace, "state": "unknown", "source": "cluster"});
            let newest: GenerationDocument = serde_json::from_value(generation).unwrap();
            let last: LastSpanDocument =
                serde_json::from_value(serde_json::json!({"traceId": "a", "start": "5"})).unwrap();
            (newest.lacks_trace(), last.or_newer_trace_id(Some(&newest)))
        };
        assert_eq!(latest(6, None), (true, "a".to_owned()), "it is waited for");
        assert_eq!(latest(6, Some("b")), (false, "b".to_owned()));
        assert_eq!(latest(4, Some("b")), (false, "a".to_owned()), "something was done to it since");
        assert!(!GenerationDocument { source: None, ..GenerationDocument::default() }.lacks_trace());
    }

    #[test]
    fn of_several_one_has_to_be_said() {
        assert!(select_single(&object(), vec![]).unwrap().is_none());
        assert_eq!(select_single(&object(), vec![known("x")]).unwrap().unwrap().namespace, "x");
        let error = select_single(&object(), vec![known("x"), known("")]).unwrap_err().to_string();
        assert_eq!(error, "several objects match head/a: Head/a -n x, Head/a; choose one with --namespace");
    }
}
