//! Updates the entries after a write: fields that it took, shares or removed.

use http::StatusCode;

use super::{
    compare::Comparison,
    conflict::Conflicts,
    fieldset::FieldSet,
    managed_fields::{ManagedFields, ManagedFieldsOperation, ManagerIdentifier, timestamp_seconds},
};
use crate::api::StatusError;

/// The limit of entries of updates; the oldest ones above it are merged into one per version.
const MAX_UPDATE_ENTRIES: usize = 10;
const ANCIENT_CHANGES_MANAGER: &str = "ancient-changes";

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FieldManagerError {
    /// The apply would change fields of other managers.
    #[error("{0}")]
    Conflicts(Conflicts),
    #[error("{0}")]
    Refused(StatusError),
}

impl FieldManagerError {
    /// An error without a status in kube-apiserver: 500 without a reason.
    pub(super) fn internal(message: String) -> Self {
        Self::Refused(StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message))
    }
}

impl From<FieldManagerError> for StatusError {
    fn from(error: FieldManagerError) -> Self {
        match error {
            FieldManagerError::Conflicts(conflicts) => conflicts.into(),
            FieldManagerError::Refused(status) => status,
        }
    }
}

/// Removes the changed or removed fields of a write from the entries of all other managers. Without `force` any
/// such field is a conflict and nothing changes. `differences` returns the change in the version of an entry;
/// entries of versions that no longer exist are dropped.
pub(super) fn take_ownership<'c>(
    managed: &mut ManagedFields,
    writer: Option<&ManagerIdentifier>,
    differences: &'c dyn Fn(&str) -> Option<&'c Comparison>,
    reset: &FieldSet,
    force: bool,
) -> Result<(), Conflicts> {
    let less = |set: &FieldSet| set.clone().recursive_difference(reset);
    let changed = |difference: &Comparison| less(&difference.modified).union(&less(&difference.added));
    if !force {
        let others = managed.iter().filter(|(id, _)| Some(*id) != writer);
        let conflicts = others.filter_map(|(id, entry)| {
            let difference = differences(&entry.api_version)?;
            Some((id.clone(), entry.set.intersection(&changed(difference))))
        });
        let conflicts = Conflicts(conflicts.filter(|(_, set)| !set.is_empty()).collect());
        if !conflicts.0.is_empty() {
            return Err(conflicts);
        }
    }
    managed.retain(|id, entry| {
        if Some(id) != writer {
            let Some(difference) = differences(&entry.api_version) else { return false };
            let gone = changed(difference).union(&less(&difference.removed));
            entry.set = std::mem::take(&mut entry.set).difference(&gone);
        }
        !entry.set.is_empty()
    });
    Ok(())
}

/// Merges the oldest entries of updates until there are few enough.
pub(super) fn cap_update_entries(managed: &mut ManagedFields) {
    let mut updaters: Vec<ManagerIdentifier> =
        managed.keys().filter(|id| id.operation == ManagedFieldsOperation::Update).cloned().collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATE_ENTRIES {
        return;
    }
    updaters.sort_by_key(|id| (timestamp_seconds(managed.get(id).and_then(|entry| entry.time.as_deref())), id.clone()));
    let mut firsts: Vec<ManagerIdentifier> = Vec::new();
    for id in updaters {
        if count <= MAX_UPDATE_ENTRIES {
            return;
        }
        match firsts.iter().find(|first| first.api_version == id.api_version) {
            None => firsts.push(id),
            Some(first) => {
                fold_into_bucket(managed, first, &id);
                count -= 1;
            }
        }
    }
}

/// Moves the fields of a manager into the bucket of its version, which starts as the oldest entry of that
/// version.
fn fold_into_bucket(managed: &mut ManagedFields, first: &ManagerIdentifier, id: &ManagerIdentifier) {
    let bucket = ManagerIdentifier::new(ANCIENT_CHANGES_MANAGER, ManagedFieldsOperation::Update, &id.api_version, "");
    if !managed.contains_key(&bucket)
        && let Some(entry) = managed.remove(first)
    {
        managed.insert(bucket.clone(), entry);
    }
    if *id == bucket {
        return;
    }
    if let (Some(entry), Some(bucket)) = (managed.remove(id), managed.get_mut(&bucket)) {
        bucket.set = std::mem::take(&mut bucket.set).union(&entry.set);
        bucket.time = entry.time;
    }
}
