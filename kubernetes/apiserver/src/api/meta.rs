//! Reads and writes an object's metadata in place.

use serde_json::{Map, Value};

/// Read access to `metadata` of an object. Absent fields read as empty.
pub trait MetaAccessor {
    fn meta(&self, field: &str) -> Option<&Value>;

    /// A string of `metadata`; empty if absent.
    fn meta_str(&self, field: &str) -> &str {
        self.meta(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.meta_str("name")
    }

    fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }

    fn uid(&self) -> &str {
        self.meta_str("uid")
    }

    fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }

    fn generation(&self) -> i64 {
        self.meta("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    fn is_deleting(&self) -> bool {
        self.meta("deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.meta("finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.meta("labels").and_then(Value::as_object).into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    fn owners(&self) -> &[Value] {
        self.meta("ownerReferences").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

impl MetaAccessor for Value {
    fn meta(&self, field: &str) -> Option<&Value> {
        self.get("metadata")?.get(field)
    }
}

/// `metadata`, created if it is absent or not an object.
pub fn meta_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    child_mut(object.as_object_mut()?, "metadata")
}

/// A member that is an object, created if it is absent or something else.
pub fn child_mut<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    let child = parent.entry(name).or_insert_with(|| Value::Object(Map::new()));
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut()
}

pub fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(meta) = meta_mut(object) {
        meta.insert(field.to_owned(), value.into());
    }
}

pub fn remove_meta(object: &mut Value, field: &str) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(field)
}
