//! Fields that an apply would take from others.

use std::{collections::BTreeMap, fmt};

use http::StatusCode;

use super::{
    element::Path,
    fieldset::Set,
    managed::{Id, Operation},
};
use crate::api::{
    Status,
    status::{Cause, Details},
};

/// The fields in conflict, by who owns them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conflicts(pub BTreeMap<Id, Set>);

impl Conflicts {
    /// Every conflict: the manager and the path of the field.
    fn each(&self) -> Vec<(&Id, String)> {
        let mut all = Vec::new();
        for (id, set) in &self.0 {
            set.for_each(&mut |path| all.push((id, Path(path).to_string())));
        }
        all
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.each();
        if let [(id, path)] = all.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {}: {path}", shown(id));
        }
        write!(f, "Apply failed with {} conflicts: ", all.len())?;
        let mut last = None;
        for (id, path) in &all {
            if last != Some(*id) {
                let line = if last.is_some() { "\n" } else { "" };
                write!(f, "{line}conflicts with {}:", shown(id))?;
                last = Some(*id);
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}

fn shown(id: &Id) -> String {
    let mut shown = format!("{:?}", id.manager);
    if !id.subresource.is_empty() {
        shown += &format!(" with subresource {:?}", id.subresource);
    }
    if id.operation == Operation::Update {
        shown += &format!(" using {}", id.api_version);
    }
    shown
}

impl From<Conflicts> for Status {
    fn from(conflicts: Conflicts) -> Self {
        let cause = |(id, path): (&Id, String)| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", shown(id)),
            field: path,
        };
        let causes = conflicts.each().into_iter().map(cause).collect();
        Status::new(StatusCode::CONFLICT, "Conflict", conflicts.to_string())
            .with(Details { causes, ..Details::default() })
    }
}
