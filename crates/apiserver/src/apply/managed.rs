//! The entries of `managedFields`: who owns what since when.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value, json};

use super::fieldset::Set;
use crate::api::meta::{self, Meta};

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By everything else.
    Update,
}

/// What tells one entry from the others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// The name of the manager.
    pub manager: String,
    /// How it writes.
    pub operation: Operation,
    /// The version that it updates. One who applies is the same in every version, so this is empty then.
    pub api_version: String,
    /// The subresource that it writes through; empty for the main path.
    pub subresource: String,
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The version that the set was written in.
    pub api_version: String,
    /// When the set was last changed by its manager, as it stands in the entry.
    pub time: Option<String>,
    /// The fields.
    pub set: Set,
}

/// All entries of an object.
pub type Managed = BTreeMap<Id, Entry>;

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

impl Id {
    /// Who writes in this way. A manager without a name is `unknown`.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// The entries of an object, as they stand in it.
pub(super) fn entries(object: &Value) -> Option<&Value> {
    object.meta("managedFields").filter(|entries| !entries.is_null())
}

/// Reads `managedFields`. Of two entries with the same id the last counts.
pub(super) fn decode(entries: Option<&Value>) -> Result<Managed, String> {
    let entries = match entries {
        None | Some(Value::Null) => return Ok(Managed::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err("managedFields is no list".to_owned()),
    };
    entries.iter().enumerate().map(|(at, entry)| decode_entry(at, entry)).collect()
}

fn decode_entry(at: usize, entry: &Value) -> Result<(Id, Entry), String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
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
        None | Some(Value::Null) => Set::default(),
        Some(fields) => Set::from_value(fields)?,
    };
    let mut id = Id::new("", operation, api_version, text("subresource"));
    text("manager").clone_into(&mut id.manager);
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((id, Entry { api_version: api_version.to_owned(), time, set }))
}

/// `managedFields`, in kube-apiserver's order.
pub(super) fn encode(managed: &Managed) -> Value {
    let mut sorted: Vec<(&Id, &Entry)> = managed.iter().collect();
    sorted.sort_by(|(left, left_entry), (right, right_entry)| {
        let key = |id: &Id, entry: &Entry| (id.operation, seconds(entry.time.as_deref()));
        let order = key(left, left_entry).cmp(&key(right, right_entry));
        order
            .then_with(|| left.manager.cmp(&right.manager))
            .then_with(|| left_entry.api_version.cmp(&right_entry.api_version))
            .then_with(|| left.subresource.cmp(&right.subresource))
    });
    sorted.into_iter().map(|(id, entry)| encode_entry(id, entry)).collect()
}

fn encode_entry(id: &Id, entry: &Entry) -> Value {
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

/// A time as seconds; what is no time is the beginning of all times.
pub(super) fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|time| time.parse::<jiff::Timestamp>().ok()).map_or(0, jiff::Timestamp::as_second)
}

/// Writes the entries into an object.
pub(super) fn store(object: &mut Value, managed: &Managed) {
    if managed.is_empty() {
        meta::remove_meta(object, "managedFields");
    } else {
        meta::set_meta(object, "managedFields", encode(managed));
    }
}

/// What is wrong with the entries of an object.
pub fn check_managers(object: &Value) -> Result<(), String> {
    decode(entries(object)).map(drop)
}

/// If nothing but times in `managedFields` differs between two objects, gives the new one the old one's times, so that a write which
/// changes nothing is seen as such. It is to be called last, when the new object is ready to be stored. True if it was so.
pub fn keep_times(old: &Value, new: &mut Value) -> bool {
    let (Some(old_entries), Some(new_entries)) = (entries(old), entries(new)) else { return false };
    if old_entries == new_entries || without_times(old_entries) != without_times(new_entries) {
        return false;
    }
    let (kept, taken) = (old_entries.clone(), meta::remove_meta(new, "managedFields"));
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
