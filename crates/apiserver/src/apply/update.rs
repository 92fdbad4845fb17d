//! How a write changes the entries: what it took, what it shares, what went.

use http::StatusCode;

use super::{
    compare::Comparison,
    conflict::Conflicts,
    fieldset::Set,
    managed::{Id, Managed, Operation, seconds},
};
use crate::api::Status;

/// More entries of updates than this are folded into one per version, the oldest first.
const MAX_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Others own what it would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// It makes no sense.
    #[error("{0}")]
    Refused(Status),
}

impl Error {
    /// An error that kube-apiserver has no status for: 500 without a reason.
    pub(super) fn plain(message: String) -> Self {
        Self::Refused(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message))
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Conflicts(conflicts) => conflicts.into(),
            Error::Refused(status) => status,
        }
    }
}

/// Takes what a write changed or removed from all others. Without `force` it changes nothing if it would take something. `differences`
/// says what a write changed in the version of an entry; entries of versions that are no more go.
pub(super) fn take<'c>(
    managed: &mut Managed,
    writer: Option<&Id>,
    differences: &'c dyn Fn(&str) -> Option<&'c Comparison>,
    reset: &Set,
    force: bool,
) -> Result<(), Conflicts> {
    let less = |set: &Set| set.clone().recursive_difference(reset);
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

/// Folds the oldest entries of updates together until there are few enough.
pub(super) fn cap(managed: &mut Managed) {
    let mut updaters: Vec<Id> = managed.keys().filter(|id| id.operation == Operation::Update).cloned().collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters.sort_by_key(|id| (seconds(managed.get(id).and_then(|entry| entry.time.as_deref())), id.clone()));
    let mut firsts: Vec<Id> = Vec::new();
    for id in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        match firsts.iter().find(|first| first.api_version == id.api_version) {
            None => firsts.push(id),
            Some(first) => {
                fold(managed, first, &id);
                count -= 1;
            }
        }
    }
}

/// Moves what a manager owns into the bucket of its version, which begins as the oldest entry of that version.
fn fold(managed: &mut Managed, first: &Id, id: &Id) {
    let bucket = Id::new(ANCIENT, Operation::Update, &id.api_version, "");
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
