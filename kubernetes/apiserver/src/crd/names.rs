//! The status of a CRD: its accepted names, and whether it is established.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::api::meta::{self, MetaAccessor};

/// The finalizer of a CRD with custom resources.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The status that a CRD should have, given the others of its group; none if it has that status. `now` is in
/// RFC 3339.
///
/// kube-apiserver first accepts the names and then establishes the CRD; here both is one change.
pub fn status<'a>(crd: &Value, others: impl IntoIterator<Item = &'a Value>, now: &str) -> Option<Value> {
    let taken = TakenNames::from_other_definitions(crd, others);
    let wanted = crd.pointer("/spec/names").unwrap_or(&Value::Null);
    let had = crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
    let (accepted, conflict) = taken.accept(wanted, had);
    let (status, reason, message) = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    let mut next = crd.get("status").filter(|status| status.is_object()).cloned().unwrap_or_else(|| json!({}));
    let fields = next.as_object_mut()?;
    fields.insert("acceptedNames".to_owned(), accepted);
    set_condition(fields, ["NamesAccepted", status, reason, message], now);
    if !is_condition_true(crd, "Established") {
        let established = match conflict {
            None => ["Established", "True", "InitialNamesAccepted", "the initial names have been accepted"],
            Some(_) => ["Established", "False", "NotAccepted", "not all names are accepted"],
        };
        set_condition(fields, established, now);
    }
    (crd.get("status") != Some(&next)).then_some(next)
}

pub fn is_condition_true(crd: &Value, condition: &str) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.filter(|of| of.get("type") == Some(&condition.into())).any(|of| of.get("status") == Some(&"True".into()))
}

/// The progress of a CRD's deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionProgress {
    /// The deletion was just requested.
    Pending,
    /// Custom resources are being deleted.
    InProgress,
    Done,
}

/// Sets the conditions of a terminating CRD, and its finalizer at the beginning.
pub fn set_terminating(crd: &mut Value, deletion: DeletionProgress, now: &str) {
    let condition = match deletion {
        DeletionProgress::Pending => [
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ],
        DeletionProgress::InProgress => {
            ["True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"]
        }
        DeletionProgress::Done => ["False", "InstanceDeletionCompleted", "removed all instances"],
    };
    let finalizers = crd.finalizers().filter(|finalizer| *finalizer != CLEANUP_FINALIZER).map(str::to_owned);
    let mut finalizers: Vec<String> = finalizers.collect();
    if deletion != DeletionProgress::Done {
        finalizers.push(CLEANUP_FINALIZER.to_owned());
    }
    if finalizers.is_empty() {
        meta::remove_meta(crd, "finalizers");
    } else {
        meta::set_meta(crd, "finalizers", finalizers);
    }
    let [status, reason, message] = condition;
    if let Some(fields) = crd.as_object_mut().and_then(|crd| meta::child_mut(crd, "status")) {
        set_condition(fields, ["Terminating", status, reason, message], now);
    }
}

/// Sets a condition. Its time is that of the last change of its status.
fn set_condition(status: &mut Map<String, Value>, condition: [&str; 4], now: &str) {
    let [kind, is, reason, message] = condition;
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(all) = conditions.as_array_mut() else { return };
    let old = all.iter_mut().find(|of| of.get("type") == Some(&kind.into()));
    let same = old.as_ref().filter(|old| old.get("status") == Some(&is.into()));
    let since = same.and_then(|old| old.get("lastTransitionTime")?.as_str()).unwrap_or(now);
    let next = json!({"type": kind, "status": is, "lastTransitionTime": since, "reason": reason, "message": message});
    match old {
        Some(old) => *old = next,
        None => all.push(next),
    }
}

/// The names of other CRDs of the group.
struct TakenNames {
    resources: HashSet<String>,
    kinds: HashSet<String>,
}

impl TakenNames {
    fn from_other_definitions<'a>(crd: &Value, others: impl IntoIterator<Item = &'a Value>) -> Self {
        let group = crd.pointer("/spec/group");
        let mut taken = Self { resources: HashSet::new(), kinds: HashSet::new() };
        for other in others {
            if other.pointer("/spec/group") != group || other.name() == crd.name() {
                continue;
            }
            let Some(names) = other.pointer("/status/acceptedNames") else { continue };
            let short = names.get("shortNames").and_then(Value::as_array).into_iter().flatten();
            let resources = [names.get("plural"), names.get("singular")].into_iter().flatten().chain(short);
            taken.resources.extend(resources.filter_map(Value::as_str).map(str::to_owned));
            let kinds = [names.get("kind"), names.get("listKind")].into_iter().flatten();
            taken.kinds.extend(kinds.filter_map(Value::as_str).map(str::to_owned));
        }
        taken
    }

    /// The accepted names, and the last conflict.
    fn accept(&self, wanted: &Value, had: &Value) -> (Value, Option<(&'static str, String)>) {
        let mut accepted = Map::new();
        let mut conflict = None;
        let singles = [
            ("plural", "PluralConflict", &self.resources),
            ("singular", "SingularConflict", &self.resources),
            ("kind", "KindConflict", &self.kinds),
            ("listKind", "ListKindConflict", &self.kinds),
        ];
        for (field, reason, taken) in singles {
            if field == "kind" {
                self.accept_short(wanted, had, &mut accepted, &mut conflict);
            }
            let name = |names: &Value| names.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            let new = name(wanted);
            let old = name(had);
            let free = new == old || !taken.contains(&new);
            if !free {
                conflict = Some((reason, format!("{new:?} is already in use")));
            }
            let name = if free { new } else { old };
            if !name.is_empty() || matches!(field, "plural" | "kind") {
                accepted.insert(field.to_owned(), name.into());
            }
        }
        if let Some(categories) =
            wanted.get("categories").filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
        {
            accepted.insert("categories".to_owned(), categories.clone());
        }
        (Value::Object(accepted), conflict)
    }

    fn accept_short(
        &self,
        wanted: &Value,
        had: &Value,
        accepted: &mut Map<String, Value>,
        conflict: &mut Option<(&'static str, String)>,
    ) {
        let list = |names: &Value| names.get("shortNames").and_then(Value::as_array).cloned().unwrap_or_default();
        let new = list(wanted);
        let old = list(had);
        let used = new.iter().filter(|name| !old.contains(name)).filter_map(Value::as_str);
        let used: Vec<String> = used
            .filter(|name| self.resources.contains(*name))
            .map(|name| format!("{name:?} is already in use"))
            .collect();
        let names = if used.is_empty() { new } else { old };
        match used.as_slice() {
            [] => {}
            [one] => *conflict = Some(("ShortNamesConflict", one.clone())),
            all => *conflict = Some(("ShortNamesConflict", format!("[{}]", all.join(", ")))),
        }
        if !names.is_empty() {
            accepted.insert("shortNames".to_owned(), names.into());
        }
    }
}

#[cfg(test)]
mod tests;
