//! The entries of `managedFields`.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value, json};

use super::fieldset::FieldSet;
use crate::api::meta::{self, MetaAccessor};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManagedFieldsOperation {
    Apply,
    Update,
}

/// The identity of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManagerIdentifier {
    pub manager: String,
    pub operation: ManagedFieldsOperation,
    /// The version that it updates. Empty for appliers, whose identity does not depend on the version.
    pub api_version: String,
    /// The subresource that it writes to; empty for the main path.
    pub subresource: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ManagedFieldsEntry {
    /// The version of the field set.
    pub api_version: String,
    /// The time of the manager's last change of the set, as in the entry.
    pub time: Option<String>,
    pub set: FieldSet,
}

/// All entries of an object.
pub type ManagedFields = BTreeMap<ManagerIdentifier, ManagedFieldsEntry>;

impl ManagedFieldsOperation {
    fn name(self) -> &'static str {
        match self {
            ManagedFieldsOperation::Apply => "Apply",
            ManagedFieldsOperation::Update => "Update",
        }
    }
}

impl ManagerIdentifier {
    /// The identity of a manager. One without a name is `unknown`.
    pub fn new(manager: &str, operation: ManagedFieldsOperation, api_version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        let api_version = if operation == ManagedFieldsOperation::Apply { "" } else { api_version };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// The encoded entries of an object.
pub(super) fn managed_fields_value(object: &Value) -> Option<&Value> {
    object.meta("managedFields").filter(|entries| !entries.is_null())
}

/// Decodes `managedFields`. Of two entries with the same id the last counts.
pub(super) fn decode(entries: Option<&Value>) -> Result<ManagedFields, String> {
    let entries = match entries {
        None | Some(Value::Null) => return Ok(ManagedFields::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err("managedFields is no list".to_owned()),
    };
    entries.iter().enumerate().map(|(at, entry)| decode_entry(at, entry)).collect()
}

fn decode_entry(at: usize, entry: &Value) -> Result<(ManagerIdentifier, ManagedFieldsEntry), String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => ManagedFieldsOperation::Apply,
        "Update" => ManagedFieldsOperation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
    }
    let set = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::from_value(fields)?,
    };
    let mut id = ManagerIdentifier::new("", operation, api_version, text("subresource"));
    text("manager").clone_into(&mut id.manager);
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((id, ManagedFieldsEntry { api_version: api_version.to_owned(), time, set }))
}

pub(super) fn encode(managed: &ManagedFields) -> Value {
    let mut sorted: Vec<(&ManagerIdentifier, &ManagedFieldsEntry)> = managed.iter().collect();
    sorted.sort_by(|(left, left_entry), (right, right_entry)| {
        let key = |id: &ManagerIdentifier, entry: &ManagedFieldsEntry| {
            (id.operation, timestamp_seconds(entry.time.as_deref()))
        };
        let order = key(left, left_entry).cmp(&key(right, right_entry));
        order
            .then_with(|| left.manager.cmp(&right.manager))
            .then_with(|| left_entry.api_version.cmp(&right_entry.api_version))
            .then_with(|| left.subresource.cmp(&right.subresource))
    });
    sorted.into_iter().map(|(id, entry)| encode_entry(id, entry)).collect()
}

fn encode_entry(id: &ManagerIdentifier, entry: &ManagedFieldsEntry) -> Value {
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| _ = fields.insert(key.to_owned(), value);
    set("apiVersion", entry.api_version.as_str().into());
    set("fieldsType", "FieldsV1".into());
    set("fieldsV1", entry.set.to_value());
    if !id.manager.is_empty() {
        set("manager", id.manager.as_str().into());
    }
    set("operation", id.operation.name().into());
    if !id.subresource.is_empty() {
        set("subresource", id.subresource.as_str().into());
    }
    if let Some(time) = &entry.time {
        set("time", time.as_str().into());
    }
    Value::Object(fields)
}

/// A time in seconds; an invalid one is the earliest of all.
pub(super) fn timestamp_seconds(time: Option<&str>) -> i64 {
    time.and_then(|time| time.parse::<jiff::Timestamp>().ok()).map_or(0, jiff::Timestamp::as_second)
}

pub(super) fn write_managed_fields(object: &mut Value, managed: &ManagedFields) {
    if managed.is_empty() {
        meta::remove_meta(object, "managedFields");
    } else {
        meta::set_meta(object, "managedFields", encode(managed));
    }
}

/// Validates the entries of an object.
pub fn check_managed_fields(object: &Value) -> Result<(), String> {
    decode(managed_fields_value(object)).map(drop)
}

/// If two objects differ in nothing but the times in `managedFields`, sets the times of the old object in the
/// new one and returns true, so that a write without changes is recognized. To be called last, when the new
/// object is ready to be stored.
pub fn keep_unchanged_times(old: &Value, new: &mut Value) -> bool {
    let (Some(old_entries), Some(new_entries)) = (managed_fields_value(old), managed_fields_value(new)) else {
        return false;
    };
    if old_entries == new_entries || without_times(old_entries) != without_times(new_entries) {
        return false;
    }
    let kept = old_entries.clone();
    let taken = meta::remove_meta(new, "managedFields");
    meta::set_meta(new, "managedFields", kept);
    if old == new {
        return true;
    }
    meta::set_meta(new, "managedFields", taken.unwrap_or_else(|| json!([])));
    false
}

fn without_times(entries: &Value) -> Vec<Cow<'_, Value>> {
    let strip = |entry: &Value| {
        let mut entry = entry.clone();
        entry.as_object_mut().map(|fields| fields.remove("time"));
        entry
    };
    entries.as_array().into_iter().flatten().map(|entry| Cow::Owned(strip(entry))).collect()
}
