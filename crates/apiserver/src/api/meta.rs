//! Reading and writing an object's metadata in place.

use serde_json::{Map, Value};

/// `metadata` of an object, read-only views of its usual fields. Missing fields read as empty.
pub trait Meta {
    /// A member of `metadata`.
    fn meta(&self, field: &str) -> Option<&Value>;

    /// A text of `metadata`, empty when absent.
    fn meta_str(&self, field: &str) -> &str {
        self.meta(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`
    fn name(&self) -> &str {
        self.meta_str("name")
    }

    /// `metadata.namespace`
    fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }

    /// `metadata.uid`
    fn uid(&self) -> &str {
        self.meta_str("uid")
    }

    /// `metadata.resourceVersion`
    fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }

    /// `metadata.generation`
    fn generation(&self) -> i64 {
        self.meta("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    /// Whether `metadata.deletionTimestamp` is set.
    fn is_deleting(&self) -> bool {
        self.meta("deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    /// `metadata.finalizers`
    fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.meta("finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// `metadata.labels`
    fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.meta("labels").and_then(Value::as_object).into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// `metadata.ownerReferences`
    fn owners(&self) -> &[Value] {
        self.meta("ownerReferences").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

impl Meta for Value {
    fn meta(&self, field: &str) -> Option<&Value> {
        self.get("metadata")?.get(field)
    }
}

/// `metadata`, made if it is not there or no object.
pub fn meta_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    child_mut(object.as_object_mut()?, "metadata")
}

/// A member that is an object, made if it is not there or something else.
pub fn child_mut<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    let child = parent.entry(name).or_insert_with(|| Value::Object(Map::new()));
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut()
}

/// Sets a member of `metadata`.
pub fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(meta) = meta_mut(object) {
        meta.insert(field.to_owned(), value.into());
    }
}

/// Removes a member of `metadata`.
pub fn remove_meta(object: &mut Value, field: &str) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(field)
}
