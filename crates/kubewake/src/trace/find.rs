//! Which trace is meant.

use anyhow::{Context, bail};
use serde::Deserialize;

use super::nanoseconds;
use crate::{
    output::text::safe,
    web::{Web, encode},
};

/// So many objects are named when none fits.
const NAMED: usize = 8;

/// An object, as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
}

/// A generation of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Generation {
    pub(super) generation: i64,
    /// Of which object that had the name. Empty if no span says so.
    pub(super) uid: String,
    /// When it began, in nanoseconds.
    #[serde(deserialize_with = "nanoseconds")]
    pub(super) start: u64,
    /// None if nothing of it was recorded.
    pub(super) trace_id: Option<String>,
    /// `converged`, `converging`, `failed`, or `unknown` where nobody said.
    pub(super) state: String,
    /// `cluster` if only the viewer's cluster tells of it, and no span.
    pub(super) source: Option<String>,
}

impl Generation {
    /// Whether nothing more is to be waited for.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "converged" | "failed")
    }

    /// Whether the viewer has it from its cluster, and nothing of its trace yet.
    pub(super) fn is_untold(&self) -> bool {
        self.source.as_deref() == Some("cluster") && self.trace_id.is_none()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Objects {
    objects: Vec<Known>,
}

/// An object, as the viewer calls it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Known {
    /// Empty if no span says so.
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    last: Option<Last>,
}

/// Where a span told of it last.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Last {
    trace_id: String,
    #[serde(deserialize_with = "nanoseconds")]
    start: u64,
}

impl Last {
    /// The trace, unless that of a generation is newer: of one that only the cluster tells of the first spans may name no object.
    fn or_newer(self, newest: Option<&Generation>) -> String {
        let newer = newest.filter(|it| it.start > self.start).and_then(|it| it.trace_id.clone());
        newer.unwrap_or(self.trace_id)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tree {
    tree: Node,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Node {
    generations: Vec<Generation>,
}

/// The trace of an object: of one generation, or the latest.
pub(super) async fn trace(web: &Web, url: &str, object: &Object, generation: Option<i64>) -> anyhow::Result<String> {
    let known = known(web, url, object).await?;
    let Some(one) = only(object, known)? else { return nothing(web, url, object).await };
    let generations = generations(web, url, &one).await?;
    let Some(wanted) = generation else { return Ok(one.last.unwrap_or_default().or_newer(generations.first())) };
    let there: Vec<String> = generations.iter().map(|it| it.generation.to_string()).collect();
    let there = if there.is_empty() { "none is known".to_owned() } else { format!("there are {}", there.join(", ")) };
    let found = generations.into_iter().find(|it| it.generation == wanted).and_then(|it| it.trace_id);
    found.with_context(|| {
        format!("no trace of generation {wanted} of {}/{} is in the store; {there}", object.kind, object.name)
    })
}

/// An object and its latest generation, as soon as there is one.
pub(super) async fn latest(web: &Web, url: &str, object: &Object) -> anyhow::Result<Option<(Known, Generation)>> {
    let Some(one) = only(object, known(web, url, object).await?)? else { return Ok(None) };
    let generations = generations(web, url, &one).await?;
    Ok(generations.into_iter().next().map(|latest| (one, latest)))
}

/// Whether no span has told of the object. One that cannot be asked for is not unknown: what is wrong is said when its trace is.
pub(super) async fn is_unknown(web: &Web, url: &str, object: &Object) -> bool {
    known(web, url, object).await.is_ok_and(|known| known.is_empty())
}

async fn known(web: &Web, url: &str, object: &Object) -> anyhow::Result<Vec<Known>> {
    let namespace = object.namespace.as_ref().map(|it| format!("&namespace={}", encode(it))).unwrap_or_default();
    let query = format!("kind={}&name={}{namespace}&limit=100", encode(&object.kind), encode(&object.name));
    let answer: Objects = web.get(&format!("{url}/api/v1/objects?{query}")).await.with_context(|| {
        format!("the viewer at {url} cannot be asked: is it there? (kubewake up, kubewake viewer, --viewer URL)")
    })?;
    Ok(answer.objects.into_iter().filter(|known| known.last.is_some()).collect())
}

async fn generations(web: &Web, url: &str, one: &Known) -> anyhow::Result<Vec<Generation>> {
    let namespace = if one.namespace.is_empty() { "-" } else { &one.namespace };
    let path = [&one.kind, namespace, &one.name].map(encode).join("/");
    let tree: Tree =
        web.get(&format!("{url}/api/v1/objects/{path}")).await.context("the viewer does not know its generations")?;
    Ok(tree.tree.generations)
}

/// The one that is meant, unless there are several.
fn only(object: &Object, mut known: Vec<Known>) -> anyhow::Result<Option<Known>> {
    if known.len() > 1 {
        let names: Vec<String> = known.iter().take(NAMED).map(named).collect();
        bail!("there are several {}/{}: {}; say which by --namespace", object.kind, object.name, names.join(", "));
    }
    Ok(known.pop())
}

/// As one writes it for kubectl.
fn named(known: &Known) -> String {
    let namespace = if known.namespace.is_empty() { String::new() } else { format!(" -n {}", safe(&known.namespace)) };
    format!("{}/{}{namespace}", safe(&known.kind), safe(&known.name))
}

/// Says what there is instead.
async fn nothing(web: &Web, url: &str, object: &Object) -> anyhow::Result<String> {
    let all: Objects = web.get(&format!("{url}/api/v1/objects?limit={NAMED}")).await.unwrap_or_default();
    let names: Vec<String> = all.objects.iter().map(named).collect();
    let there = match names.is_empty() {
        true => "there are no objects at all: docs/tracing-an-operator.md says how they get into traces".to_owned(),
        false => format!("there is {}", names.join(", ")),
    };
    let at = object.namespace.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
    bail!("no trace of {}/{}{at} at {url}; {there}", object.kind, object.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Object {
        Object { kind: "head".to_owned(), name: "a".to_owned(), namespace: None }
    }

    fn known(namespace: &str) -> Known {
        Known { kind: "Head".to_owned(), namespace: namespace.to_owned(), name: "a".to_owned(), ..Known::default() }
    }

    #[test]
    fn the_trace_of_a_change_that_only_the_cluster_tells_of_is_the_latest_once_it_is_there() {
        let latest = |start: u64, trace: Option<&str>| {
            let generation = serde_json::json!({"generation": 2, "start": start.to_string(), "traceId": trace, "state": "unknown", "source": "cluster"});
            let newest: Generation = serde_json::from_value(generation).unwrap();
            let last: Last = serde_json::from_value(serde_json::json!({"traceId": "a", "start": "5"})).unwrap();
            (newest.is_untold(), last.or_newer(Some(&newest)))
        };
        assert_eq!(latest(6, None), (true, "a".to_owned()), "it is waited for");
        assert_eq!(latest(6, Some("b")), (false, "b".to_owned()));
        assert_eq!(latest(4, Some("b")), (false, "a".to_owned()), "something was done to it since");
        assert!(!Generation { source: None, ..Generation::default() }.is_untold());
    }

    #[test]
    fn of_several_one_has_to_be_said() {
        assert!(only(&object(), vec![]).unwrap().is_none());
        assert_eq!(only(&object(), vec![known("x")]).unwrap().unwrap().namespace, "x");
        let error = only(&object(), vec![known("x"), known("")]).unwrap_err().to_string();
        assert_eq!(error, "there are several head/a: Head/a -n x, Head/a; say which by --namespace");
    }
}
