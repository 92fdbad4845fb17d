//! Records the field ownership of a write by one manager.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value};

use super::{
    compare::{Comparison, compare},
    conflict::Conflicts,
    fieldset::FieldSet,
    last_applied,
    managed_fields::{self, ManagedFields, ManagedFieldsEntry, ManagedFieldsOperation, ManagerIdentifier},
    merge::merge,
    ownership::{self, FieldManagerError},
    prune::prune,
    schema_position::SchemaPosition,
    to_field_set::to_set,
    validate::validate,
};
use crate::{
    api::{
        GroupVersion, StatusError,
        meta::{self, MetaAccessor},
    },
    schema::{Schema, SchemaNode},
};

/// The longest name of a manager, in bytes.
const MAX_MANAGER_BYTES: usize = 128;
/// The manager of fields that were set before the first apply, in an object without `managedFields`.
const BEFORE_FIRST_APPLY_MANAGER: &str = "before-first-apply";

/// Fields without an owner: the server sets them, or they identify the object.
static STRIPPED_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| {
    let of_meta = ["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"];
    let mut set = FieldSet::from_paths(&[&["apiVersion"], &["kind"], &["metadata"]]);
    for name in of_meta.into_iter().chain(["managedFields", "resourceVersion"]) {
        set = set.union(&FieldSet::from_paths(&[&["metadata", name]]));
    }
    set
});

/// Converts objects to the other versions of their kind, in which their managers may have written.
pub trait VersionConverter: std::fmt::Debug {
    /// An object of the request's version in another version, and its schema; none if there is no such version.
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, SchemaNode)>;
}

/// The differences of a write in each version that has a manager.
struct VersionComparisons {
    own: (String, Comparison),
    others: BTreeMap<String, Option<Comparison>>,
}

impl VersionComparisons {
    fn for_version(&self, api_version: &str) -> Option<&Comparison> {
        if self.own.0 == api_version {
            return Some(&self.own.1);
        }
        self.others.get(api_version).map_or(Some(&self.own.1), Option::as_ref)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FieldManager<'a> {
    pub manager: &'a str,
    /// The version of the request, in which all objects are given.
    pub api_version: &'a str,
    pub kind: &'a str,
    /// The subresource of the request; empty for the main path.
    pub subresource: &'a str,
    /// The schema of the objects.
    pub schema: &'a Schema,
    /// The fields that the request cannot change ([`super::reset_fields`]).
    pub reset: &'a FieldSet,
    /// The time for `managedFields`: RFC 3339, UTC, seconds.
    pub now: &'a str,
    /// Conversion to the other versions of the kind. Without it all entries are treated as of the request's
    /// version.
    pub convert: Option<&'a dyn VersionConverter>,
}

impl FieldManager<'_> {
    /// Records the ownership of a create (without `live`) or of an update: `new` is the decoded and defaulted
    /// object, before admission changes it. The `managedFields` of the writer are used as in kube-apiserver:
    /// the entries of `new` count if they can be decoded, else those of `live`; an empty list, or one of an
    /// empty entry, resets an existing object.
    pub fn update(&self, live: Option<&Value>, new: &mut Value) {
        let managed = self.initial_entries(live, new);
        meta::remove_meta(new, "managedFields");
        if managed.is_empty() && live.is_some() {
            return;
        }
        // After an error the object has no entries, as in kube-apiserver: none are better than wrong ones.
        if let Ok(managed) = self.update_entries(live, new, managed) {
            managed_fields::write_managed_fields(new, &managed);
        }
    }

    /// The differences of two objects, in every version that has a manager.
    fn compare_versions(
        &self,
        old: &Value,
        new: &Value,
        managed: &ManagedFields,
    ) -> Result<VersionComparisons, String> {
        let compared = |old: &Value, new: &Value, schema: &Schema| {
            compare(old, new, schema).map_err(|error| format!("failed to compare objects: {error}"))
        };
        let own = (self.api_version.to_owned(), compared(old, new, self.schema)?);
        let mut others = BTreeMap::new();
        let Some(convert) = self.convert else { return Ok(VersionComparisons { own, others }) };
        let versions = managed.values().map(|entry| &entry.api_version).filter(|version| **version != own.0);
        for version in versions {
            if others.contains_key(version) {
                continue;
            }
            let converted = |object: &Value| convert.convert(object, version);
            let difference = match (converted(old), converted(new)) {
                (Some((old, schema)), Some((new, _))) => {
                    validate(&old, &schema).map_err(|error| format!("failed to convert old object: {error}"))?;
                    validate(&new, &schema).map_err(|error| format!("failed to convert new object: {error}"))?;
                    Some(compared(&old, &new, &schema)?)
                }
                _ => None,
            };
            others.insert(version.clone(), difference);
        }
        Ok(VersionComparisons { own, others })
    }

    /// Decodes entries. They are reconciled with the schema of a custom type, which may have changed; that of a
    /// built-in type never does.
    fn decode(&self, entries: Option<&Value>) -> Result<ManagedFields, String> {
        let mut managed = managed_fields::decode(entries)?;
        if self.schema.name.is_empty() {
            for entry in managed.values_mut().filter(|entry| entry.api_version == self.api_version) {
                entry.set = SchemaPosition::root(self.schema).reconcile(std::mem::take(&mut entry.set));
            }
        }
        Ok(managed)
    }

    fn initial_entries(&self, live: Option<&Value>, new: &Value) -> ManagedFields {
        let of_live = || self.decode(live.and_then(managed_fields::managed_fields_value)).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        let sent = managed_fields::managed_fields_value(new);
        if sent.and_then(Value::as_array).is_some_and(|entries| is_reset(entries)) {
            return ManagedFields::new();
        }
        match self.decode(sent) {
            Ok(managed) if !managed.is_empty() => managed,
            _ => of_live(),
        }
    }

    fn update_entries(
        &self,
        live: Option<&Value>,
        new: &Value,
        mut managed: ManagedFields,
    ) -> Result<ManagedFields, String> {
        let nothing = Value::Object(Map::new());
        let differences = self.compare_versions(live.unwrap_or(&nothing), new, &managed)?;
        // There are no conflicts with `force`.
        let _ = ownership::take_ownership(
            &mut managed,
            None,
            &|version| differences.for_version(version),
            self.reset,
            true,
        );
        let VersionComparisons { own: (_, difference), .. } = differences;
        let taken = difference.modified.union(&difference.added);
        let taken = taken.recursive_difference(self.reset).difference(&STRIPPED_FIELDS);
        if !taken.is_empty() {
            let id = ManagerIdentifier::new(
                self.manager,
                ManagedFieldsOperation::Update,
                self.api_version,
                self.subresource,
            );
            let set = managed.remove(&id).map(|entry| entry.set).unwrap_or_default().union(&taken);
            managed.insert(id, self.new_entry(set));
        }
        ownership::cap_update_entries(&mut managed);
        Ok(managed)
    }

    fn new_entry(&self, set: FieldSet) -> ManagedFieldsEntry {
        ManagedFieldsEntry { api_version: self.api_version.to_owned(), time: Some(self.now.to_owned()), set }
    }

    /// Server-side apply: the live object (none: it is created) with the fields of the configuration, without
    /// those that this manager applied before and no longer does. The result is to be decoded and defaulted as
    /// any other object.
    pub fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, FieldManagerError> {
        self.check_configuration(config)?;
        let managed = self
            .decode(live.and_then(managed_fields::managed_fields_value))
            .map_err(step_error("decode managed fields"))?;
        let applied = match self.apply_configuration(live, config, managed.clone(), force) {
            Err(FieldManagerError::Conflicts(conflicts)) if self.manager == last_applied::KUBECTL_MANAGER => {
                let left =
                    live.map_or(Some(conflicts.clone()), |live| self.without_client_side_conflicts(live, &conflicts));
                match left {
                    Some(left) => Err(FieldManagerError::Conflicts(left)),
                    None => self.apply_configuration(live, config, managed, true),
                }
            }
            other => other,
        };
        let mut object = applied?;
        if self.manager == last_applied::KUBECTL_MANAGER {
            last_applied::renew_annotation(&mut object, config);
        }
        Ok(object)
    }

    /// The conflicts other than with the manager's own earlier client-side apply; none if there are no others.
    fn without_client_side_conflicts(&self, live: &Value, conflicts: &Conflicts) -> Option<Conflicts> {
        let Some(own) = last_applied::owned_by_annotation(live, self.api_version, self.schema) else {
            return Some(conflicts.clone());
        };
        let left = conflicts.0.iter().map(|(id, set)| (id.clone(), set.clone().difference(&own)));
        let left = Conflicts(left.filter(|(_, set)| !set.is_empty()).collect());
        (!left.0.is_empty()).then_some(left)
    }

    fn check_configuration(&self, config: &Value) -> Result<(), FieldManagerError> {
        let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
        if (text("apiVersion"), text("kind")) != (self.api_version, self.kind) {
            let gvk = group_version_kind(text("apiVersion"), text("kind"));
            return Err(FieldManagerError::Refused(StatusError::bad_request(format!("invalid object type: {gvk}"))));
        }
        if managed_fields::managed_fields_value(config).is_some() {
            return Err(FieldManagerError::Refused(StatusError::bad_request("metadata.managedFields must be nil")));
        }
        Ok(())
    }

    fn apply_configuration(
        &self,
        live: Option<&Value>,
        config: &Value,
        managed: ManagedFields,
        force: bool,
    ) -> Result<Value, FieldManagerError> {
        let mut managed = self.with_before_first_apply(live, managed)?;
        self.validate_configuration(config)?;
        let nothing = Value::Object(Map::new());
        let old = live.unwrap_or(&nothing);
        let id =
            ManagerIdentifier::new(self.manager, ManagedFieldsOperation::Apply, self.api_version, self.subresource);
        let last = managed.remove(&id);
        let set = to_set(config, self.schema).map_err(step_error("get field set"))?;
        let entry = ManagedFieldsEntry {
            api_version: self.api_version.to_owned(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            set: set.recursive_difference(self.reset),
        };
        managed.insert(id.clone(), entry);
        let mut object = merge(old, config, self.schema).map_err(step_error("merge config"))?;
        if let Some(last) = last.filter(|last| !last.set.is_empty()) {
            let owned = managed.values().fold(FieldSet::default(), |all, entry| all.union(&entry.set));
            object = prune(object, &last.set, &owned, self.schema).map_err(step_error("prune fields"))?;
        }
        let differences = self.compare_versions(old, &object, &managed).map_err(FieldManagerError::internal)?;
        let of_version = |version: &str| differences.for_version(version);
        ownership::take_ownership(&mut managed, Some(&id), &of_version, self.reset, force)
            .map_err(FieldManagerError::Conflicts)?;
        self.finish_applied_entry(&mut managed, &id, live.is_none_or(|live| !is_unchanged(live, &object)));
        managed_fields::write_managed_fields(&mut object, &managed);
        Ok(object)
    }

    /// The entries of an object before an apply. If it had none, its fields get a manager.
    fn with_before_first_apply(
        &self,
        live: Option<&Value>,
        managed: ManagedFields,
    ) -> Result<ManagedFields, FieldManagerError> {
        match live {
            Some(live) if managed.is_empty() => {
                let before = FieldManager { manager: BEFORE_FIRST_APPLY_MANAGER, ..*self };
                before.update_entries(None, live, managed).map_err(step_error("create manager for existing fields"))
            }
            _ => Ok(managed),
        }
    }

    fn validate_configuration(&self, config: &Value) -> Result<(), FieldManagerError> {
        validate(config, self.schema).map_err(|error| {
            let namespace = config.namespace();
            let name = config.name();
            let gvk = group_version_kind(self.api_version, self.kind);
            FieldManagerError::internal(format!(
                "failed to create typed patch object ({namespace}/{name}; {gvk}): {error}"
            ))
        })
    }

    /// Completes the entry of the applier: fields without an owner are dropped, and the time is now if the
    /// object changed. A manager that only shares fields gets no time, as in kube-apiserver.
    fn finish_applied_entry(&self, managed: &mut ManagedFields, id: &ManagerIdentifier, changed: bool) {
        let Some(entry) = managed.get_mut(id) else { return };
        entry.set = std::mem::take(&mut entry.set).difference(&STRIPPED_FIELDS);
        if changed {
            entry.time = Some(self.now.to_owned());
        }
        if entry.set.is_empty() {
            managed.remove(id);
        }
    }
}

/// Whether an apply changed nothing. `apiVersion` and `kind` are not stored, and `managedFields` is not part of
/// an apply.
fn is_unchanged(live: &Value, object: &Value) -> bool {
    let (Value::Object(live), Value::Object(object)) = (live, object) else { return false };
    let plain = |members: &Map<String, Value>| {
        members.keys().filter(|key| !matches!(key.as_str(), "apiVersion" | "kind")).count()
    };
    let member = |(key, value): (&String, &Value)| match key.as_str() {
        "apiVersion" | "kind" => true,
        _ => live.get(key) == Some(value),
    };
    plain(live) == plain(object) && object.iter().all(member)
}

/// An error in one step of an apply.
fn step_error(step: &str) -> impl Fn(String) -> FieldManagerError {
    move |error| FieldManagerError::internal(format!("failed to {step}: {error}"))
}

fn group_version_kind(api_version: &str, kind: &str) -> String {
    let gv = GroupVersion::parse(api_version).unwrap_or_else(|| GroupVersion::new("", ""));
    format!("{}/{}, Kind={kind}", gv.group, gv.version)
}

/// Whether these `managedFields` request a reset.
fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [one] => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// The manager of a request without one: the first part of its user agent.
pub fn default_manager(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for char in name.chars().filter(|char| !char.is_control()) {
        if manager.len() + char.len_utf8() > MAX_MANAGER_BYTES {
            break;
        }
        manager.push(char);
    }
    manager
}
