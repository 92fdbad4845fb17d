//! ControllerRevisions: what the template of a StatefulSet or DaemonSet was and is.
//!
//! A revision holds a patch that restores the template, as `kubectl rollout undo` applies it. The revision with the highest number
//! is what the object asks for now. A template that comes back gets its old revision, with a new number.
//!
//! *Assumes* that the revisions it is given are all that the object has: see [`adopt`](super::adopt).

use std::{collections::HashSet, sync::Arc};

use k8s_openapi::{
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::runtime::RawExtension,
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde_json::{Value, json};

use super::{Context, hash, owner, write};
use crate::{
    error::{Error, Result},
    key::Key,
};

/// The label of a pod that names its revision; on a StatefulSet's pods by name, on a DaemonSet's by hash.
pub const POD_LABEL: &str = "controller-revision-hash";
/// Kubernetes leaves room for the hash in names of at most 253 letters.
const LONGEST_PREFIX: usize = 223;
/// So many hashes in a row that others have taken are no accident.
const TRIES: i32 = 16;

/// Whose revisions these are.
#[derive(Debug)]
pub struct Parent<'a, K> {
    /// The StatefulSet or DaemonSet.
    pub object: &'a K,
    /// What it asks for now.
    pub template: &'a PodTemplateSpec,
    /// How often a name was taken before.
    pub collisions: i32,
    /// The label of a revision that tells its hash.
    pub label: &'static str,
}

/// The revisions of an object.
#[derive(Debug)]
pub struct History {
    /// All but the newest, oldest first.
    pub old: Vec<Arc<ControllerRevision>>,
    /// What the object asks for now.
    pub newest: Arc<ControllerRevision>,
    /// How often a name was taken by now.
    pub collisions: i32,
}

impl History {
    /// The revision of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<ControllerRevision>> {
        self.old.iter().chain([&self.newest]).find(|revision| revision.name_any() == name)
    }

    /// Deletes the oldest revisions that nothing uses, all but `limit` of them.
    pub async fn truncate(&self, context: &Context, live: &HashSet<String>, limit: Option<i32>) -> Result<()> {
        let unused = || self.old.iter().filter(|revision| !live.contains(&revision.name_any()));
        let keep = usize::try_from(limit.unwrap_or(10)).unwrap_or(usize::MAX);
        for revision in unused().take(unused().count().saturating_sub(keep)) {
            write::delete(&context.client, &context.views.revisions, &**revision).await?;
        }
        Ok(())
    }
}

/// Finds the revision of what the object asks for now, or makes it.
pub async fn settle<K>(
    context: &Context,
    parent: &Parent<'_, K>,
    mut held: Vec<Arc<ControllerRevision>>,
) -> Result<History>
where
    K: Resource<DynamicType = ()>,
{
    let data = data(parent.template)?;
    held.sort_by_cached_key(|revision| (revision.revision, revision.creation_timestamp(), revision.name_any()));
    let next = held.last().map_or(0, |last| last.revision) + 1;
    let Some(place) = held.iter().rposition(|revision| is_of(revision, &data)) else {
        let (newest, collisions) = make(context, parent, data, next).await?;
        return Ok(History { old: held, newest, collisions });
    };
    let found = held.remove(place);
    let is_last = place == held.len();
    let newest = if is_last {
        found
    } else {
        let patch = json!({"metadata": {"resourceVersion": found.resource_version()}, "revision": next});
        write::merge(&context.client, &context.views.revisions, &*found, &patch).await?
    };
    Ok(History { old: held, newest, collisions: parent.collisions })
}

/// The template that a revision holds.
pub fn template(revision: &ControllerRevision) -> Result<PodTemplateSpec> {
    let template = revision.data.as_ref().and_then(|data| data.0.pointer("/spec/template")).cloned();
    serde_json::from_value(template.unwrap_or_default())
        .map_err(|error| Error::Object(format!("ControllerRevision {} holds no template: {error}", Key::of(revision))))
}

/// A strategic merge patch.
fn data(template: &PodTemplateSpec) -> Result<Value> {
    let mut template =
        serde_json::to_value(template).map_err(|error| Error::Object(format!("its template is no JSON: {error}")))?;
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), "replace".into());
    }
    Ok(json!({"spec": {"template": template}}))
}

fn is_of(revision: &ControllerRevision, data: &Value) -> bool {
    revision.data.as_ref().is_some_and(|held| held.0 == *data)
}

/// Another name if somebody else has taken the one that the hash gives.
async fn make<K>(
    context: &Context,
    parent: &Parent<'_, K>,
    data: Value,
    number: i64,
) -> Result<(Arc<ControllerRevision>, i32)>
where
    K: Resource<DynamicType = ()>,
{
    let mut collisions = parent.collisions;
    loop {
        let revision = new(parent, &data, number, collisions);
        let error = match write::create(&context.client, &context.views.revisions, &revision).await {
            Ok(made) => return Ok((made, collisions)),
            Err(error) => error,
        };
        if !error.is_conflict() || collisions - parent.collisions >= TRIES {
            return Err(error);
        }
        let taken = write::fresh(&context.client, &context.views.revisions, &revision).await?;
        if taken.is_none_or(|taken| is_of(&taken, &data) && is_within_reach(&taken, parent.object)) {
            return Err(error);
        }
        collisions += 1;
    }
}

/// Whether the revision is the parent's or soon can be: it is now seen as it is, and adopted when the parent is looked at again; or
/// it goes with an earlier object of the same name.
fn is_within_reach<K>(revision: &ControllerRevision, parent: &K) -> bool
where
    K: Resource<DynamicType = ()>,
{
    owner::controller_of(revision).is_none_or(|owner| owner.kind == K::kind(&()) && owner.name == parent.name_any())
}

fn new<K>(parent: &Parent<'_, K>, data: &Value, number: i64, collisions: i32) -> ControllerRevision
where
    K: Resource<DynamicType = ()>,
{
    let hash = hash::short(data.to_string().as_bytes(), collisions);
    let mut labels = parent.template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    labels.insert(parent.label.to_owned(), hash.clone());
    let prefix: String = parent.object.name_any().chars().take(LONGEST_PREFIX).collect();
    let metadata = ObjectMeta {
        name: Some(format!("{prefix}-{hash}")),
        namespace: parent.object.namespace(),
        labels: Some(labels),
        annotations: parent.object.meta().annotations.clone(),
        owner_references: Some(vec![owner::reference(parent.object)]),
        ..ObjectMeta::default()
    };
    ControllerRevision { metadata, data: Some(RawExtension(data.clone())), revision: number }
}
