//! ControllerRevisions: the former and the current templates of a StatefulSet or DaemonSet.
//!
//! A revision holds a patch that restores the template, as `kubectl rollout undo` applies it. The revision with
//! the highest number is the current one. A template that is restored gets its old revision back, with a new
//! number.
//!
//! *Assumed*: the given revisions are all revisions of the object; see
//! [`controller_ref_manager`](super::controller_ref_manager).

use std::{collections::HashSet, sync::Arc};

use k8s_openapi::{
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::runtime::RawExtension,
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde_json::{Value, json};

use super::{ControllerContext, hash, owner_reference, write_through};
use crate::{
    error::{ClusterError, Result},
    key::NamespacedKey,
};

/// The label of a pod with its revision: on a StatefulSet's pods its name, on a DaemonSet's its hash.
pub const POD_REVISION_HASH_LABEL: &str = "controller-revision-hash";
/// Kubernetes leaves room for the hash in names of at most 253 characters.
const MAX_NAME_PREFIX_LENGTH: usize = 223;
/// More collisions in a row than this are no accident.
const MAX_NAME_COLLISIONS: i32 = 16;

#[derive(Debug)]
pub struct RevisionParent<'a, K> {
    pub object: &'a K,
    /// The current template.
    pub template: &'a PodTemplateSpec,
    /// The number of name collisions so far.
    pub collisions: i32,
    /// The label of a revision with its hash.
    pub label: &'static str,
}

#[derive(Debug)]
pub struct RevisionHistory {
    /// All but the newest, oldest first.
    pub old: Vec<Arc<ControllerRevision>>,
    /// The revision of the current template.
    pub newest: Arc<ControllerRevision>,
    /// The number of name collisions so far.
    pub collisions: i32,
}

impl RevisionHistory {
    pub fn find(&self, name: &str) -> Option<&Arc<ControllerRevision>> {
        self.old.iter().chain([&self.newest]).find(|revision| revision.name_any() == name)
    }

    /// Deletes the oldest unused revisions, all but `limit` of them.
    pub async fn truncate(
        &self,
        context: &ControllerContext,
        live: &HashSet<String>,
        limit: Option<i32>,
    ) -> Result<()> {
        let unused = || self.old.iter().filter(|revision| !live.contains(&revision.name_any()));
        let keep = usize::try_from(limit.unwrap_or(10)).unwrap_or(usize::MAX);
        for revision in unused().take(unused().count().saturating_sub(keep)) {
            write_through::delete(&context.client, &context.informers.revisions, &**revision).await?;
        }
        Ok(())
    }
}

/// Finds or creates the revision of the current template.
pub async fn sync_revisions<K>(
    context: &ControllerContext,
    parent: &RevisionParent<'_, K>,
    mut held: Vec<Arc<ControllerRevision>>,
) -> Result<RevisionHistory>
where
    K: Resource<DynamicType = ()>,
{
    let data = revision_data(parent.template)?;
    held.sort_by_cached_key(|revision| (revision.revision, revision.creation_timestamp(), revision.name_any()));
    let next = held.last().map_or(0, |last| last.revision) + 1;
    let Some(place) = held.iter().rposition(|revision| has_data(revision, &data)) else {
        let (newest, collisions) = create_revision(context, parent, data, next).await?;
        return Ok(RevisionHistory { old: held, newest, collisions });
    };
    let found = held.remove(place);
    let is_last = place == held.len();
    let newest = if is_last {
        found
    } else {
        let patch = json!({"metadata": {"resourceVersion": found.resource_version()}, "revision": next});
        write_through::merge_patch(&context.client, &context.informers.revisions, &*found, &patch).await?
    };
    Ok(RevisionHistory { old: held, newest, collisions: parent.collisions })
}

/// The template of a revision.
pub fn template(revision: &ControllerRevision) -> Result<PodTemplateSpec> {
    let template = revision.data.as_ref().and_then(|data| data.0.pointer("/spec/template")).cloned();
    serde_json::from_value(template.unwrap_or_default()).map_err(|error| {
        ClusterError::Object(format!(
            "ControllerRevision {} contains no valid template: {error}",
            NamespacedKey::from_object(revision)
        ))
    })
}

fn revision_data(template: &PodTemplateSpec) -> Result<Value> {
    let mut template = serde_json::to_value(template)
        .map_err(|error| ClusterError::Object(format!("failed to encode the pod template as JSON: {error}")))?;
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), "replace".into());
    }
    Ok(json!({"spec": {"template": template}}))
}

fn has_data(revision: &ControllerRevision, data: &Value) -> bool {
    revision.data.as_ref().is_some_and(|held| held.0 == *data)
}

/// Creates a revision under another name if the name of the hash is taken.
async fn create_revision<K>(
    context: &ControllerContext,
    parent: &RevisionParent<'_, K>,
    data: Value,
    number: i64,
) -> Result<(Arc<ControllerRevision>, i32)>
where
    K: Resource<DynamicType = ()>,
{
    let mut collisions = parent.collisions;
    loop {
        let revision = new_revision(parent, &data, number, collisions);
        let error = match write_through::create(&context.client, &context.informers.revisions, &revision).await {
            Ok(made) => return Ok((made, collisions)),
            Err(error) => error,
        };
        if !error.is_conflict() || collisions - parent.collisions >= MAX_NAME_COLLISIONS {
            return Err(error);
        }
        let taken = write_through::get_latest(&context.client, &context.informers.revisions, &revision).await?;
        if taken.is_none_or(|taken| has_data(&taken, &data) && is_adoptable(&taken, parent.object)) {
            return Err(error);
        }
        collisions += 1;
    }
}

/// Whether the revision has no controller, or one of the parent's kind and name: it is the parent's, or will be
/// adopted in the next sync, or belongs to an earlier object of this name and is about to be deleted.
fn is_adoptable<K>(revision: &ControllerRevision, parent: &K) -> bool
where
    K: Resource<DynamicType = ()>,
{
    owner_reference::controller_of(revision)
        .is_none_or(|owner| owner.kind == K::kind(&()) && owner.name == parent.name_any())
}

fn new_revision<K>(parent: &RevisionParent<'_, K>, data: &Value, number: i64, collisions: i32) -> ControllerRevision
where
    K: Resource<DynamicType = ()>,
{
    let hash = hash::short(data.to_string().as_bytes(), collisions);
    let mut labels = parent.template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    labels.insert(parent.label.to_owned(), hash.clone());
    let prefix: String = parent.object.name_any().chars().take(MAX_NAME_PREFIX_LENGTH).collect();
    let metadata = ObjectMeta {
        name: Some(format!("{prefix}-{hash}")),
        namespace: parent.object.namespace(),
        labels: Some(labels),
        annotations: parent.object.meta().annotations.clone(),
        owner_references: Some(vec![owner_reference::controller_reference(parent.object)]),
        ..ObjectMeta::default()
    };
    ControllerRevision { metadata, data: Some(RawExtension(data.clone())), revision: number }
}
