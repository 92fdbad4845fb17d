//! Conflicts: fields of other managers that an apply would change.

use std::{collections::BTreeMap, fmt};

use http::StatusCode;

use super::{
    element::FieldPath,
    fieldset::FieldSet,
    managed_fields::{ManagedFieldsOperation, ManagerIdentifier},
};
use crate::api::{
    StatusError,
    status::{StatusCause, StatusDetails},
};

/// The fields in conflict, by their managers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conflicts(pub BTreeMap<ManagerIdentifier, FieldSet>);

impl Conflicts {
    /// Every conflict: the manager and the path of the field.
    fn conflicting_paths(&self) -> Vec<(&ManagerIdentifier, String)> {
        let mut all = Vec::new();
        for (id, set) in &self.0 {
            set.for_each(&mut |path| all.push((id, FieldPath(path).to_string())));
        }
        all
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.conflicting_paths();
        if let [(id, path)] = all.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {}: {path}", format_manager(id));
        }
        write!(f, "Apply failed with {} conflicts: ", all.len())?;
        let mut last = None;
        for (id, path) in &all {
            if last != Some(*id) {
                let line = if last.is_some() { "\n" } else { "" };
                write!(f, "{line}conflicts with {}:", format_manager(id))?;
                last = Some(*id);
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}

fn format_manager(id: &ManagerIdentifier) -> String {
    let mut shown = format!("{:?}", id.manager);
    if !id.subresource.is_empty() {
        shown += &format!(" with subresource {:?}", id.subresource);
    }
    if id.operation == ManagedFieldsOperation::Update {
        shown += &format!(" using {}", id.api_version);
    }
    shown
}

impl From<Conflicts> for StatusError {
    fn from(conflicts: Conflicts) -> Self {
        let cause = |(id, path): (&ManagerIdentifier, String)| StatusCause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", format_manager(id)),
            field: path,
        };
        let causes = conflicts.conflicting_paths().into_iter().map(cause).collect();
        StatusError::new(StatusCode::CONFLICT, "Conflict", conflicts.to_string())
            .with(StatusDetails { causes, ..StatusDetails::default() })
    }
}
