//! Custom resources lose what their schema does not know.
//!
//! One walk does what kube-apiserver does before it defaults and validates a custom resource: unknown fields go, nulls go
//! where null is neither a value nor replaced by a default, and the metadata of the object and of objects embedded in it is
//! read as `ObjectMeta`. Apart from metadata no types are checked: that is validation. Pruning again changes nothing.

use serde_json::{Map, Value};

use super::{
    Schema, Shape, builtin,
    decode::{self, DecodeError, MAX_DEPTH},
};
use crate::api::field;

/// Dropped fields that are reported: as many as for built-in kinds.
const MAX_REPORTED: usize = 100;
/// The members that every object has, whatever its schema says.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Prunes an object by the schema of its root, and gives the paths of what was dropped and is unknown: of its metadata first,
/// then of the rest, then of the metadata of embedded objects.
pub fn prune(object: &mut Value, schema: &Schema) -> Result<Vec<String>, DecodeError> {
    let mut dropped = Vec::new();
    if let Some(metadata) = object.get_mut("metadata") {
        dropped.extend(object_meta(metadata)?.iter().map(|path| decode::join("metadata", path)));
    }
    let mut walk = Walk { root: true, ..Walk::default() };
    walk.value(object, schema).map_err(Refused::into_error)?;
    walk.pruned.sort();
    walk.embedded.sort();
    dropped.append(&mut walk.pruned);
    dropped.append(&mut walk.embedded);
    Ok(dropped)
}

/// Reads metadata as `ObjectMeta`.
fn object_meta(metadata: &mut Value) -> Result<Vec<String>, DecodeError> {
    match builtin::by_name(OBJECT_META) {
        Some(schema) => decode::check(metadata, schema),
        None => Ok(Vec::new()),
    }
}

#[derive(Default)]
struct Walk {
    depth: u32,
    /// The next object is the root: an object whose metadata was read already.
    root: bool,
    /// Paths from the value that is being walked, as in `embedded`.
    pruned: Vec<String>,
    embedded: Vec<String>,
}

/// Why an embedded object is none.
struct Refused {
    path: String,
    value: Value,
    why: String,
}

impl Refused {
    fn into_error(self) -> DecodeError {
        if self.path.is_empty() {
            return DecodeError::text(self.why);
        }
        DecodeError::text(field::Error::invalid(self.path, &self.value, &self.why).to_string())
    }
}

type Outcome = Result<(), Refused>;

impl Walk {
    fn value(&mut self, value: &mut Value, schema: &Schema) -> Outcome {
        match (value, &schema.shape) {
            (Value::Object(members), Shape::Object { .. }) => self.nested(|walk| walk.object(members, schema)),
            (Value::Object(members), Shape::Map { values, .. }) => self.nested(|walk| walk.map(members, values)),
            (Value::Array(list), Shape::List { items, .. }) => self.nested(|walk| {
                let mut list = list.iter_mut().enumerate();
                list.try_for_each(|(index, item)| walk.within(|| format!("[{index}]"), |walk| walk.value(item, items)))
            }),
            (_, Shape::Any) | (Value::Array(_), Shape::Object { open: true, .. }) => Ok(()),
            (other, _) => self.nested(|walk| walk.clear(other)),
        }
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        if self.depth == MAX_DEPTH {
            return Err(Refused { path: String::new(), value: Value::Null, why: "exceeded max depth".into() });
        }
        self.depth += 1;
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, members: &mut Map<String, Value>, schema: &Schema) -> Outcome {
        let Shape::Object { fields, open, embedded, .. } = &schema.shape else { return Ok(()) };
        let is_root = std::mem::take(&mut self.root);
        let mut outcome = Ok(());
        members.retain(|name, value| {
            if outcome.is_err() {
                return true;
            }
            if (is_root || *embedded) && META_FIELDS.contains(&name.as_str()) {
                outcome = if is_root { Ok(()) } else { self.meta_field(name, value) };
                return true;
            }
            match fields.get(name.as_str()) {
                Some(node) if value.is_null() => node.nullable || node.default.is_some(),
                Some(node) => {
                    outcome = self.within(|| name.clone(), |walk| walk.value(value, node));
                    true
                }
                None => *open || self.report(name),
            }
        });
        outcome
    }

    fn map(&mut self, members: &mut Map<String, Value>, values: &Schema) -> Outcome {
        // A root that is a map still has its metadata.
        let is_root = std::mem::take(&mut self.root);
        let mut outcome = Ok(());
        members.retain(|name, value| {
            if outcome.is_err() || is_root && META_FIELDS.contains(&name.as_str()) {
                return true;
            }
            if value.is_null() {
                return values.nullable || values.default.is_some();
            }
            outcome = self.within(|| name.clone(), |walk| walk.value(value, values));
            true
        });
        outcome
    }

    /// A member that every embedded object has.
    fn meta_field(&mut self, name: &str, value: &mut Value) -> Outcome {
        let refused = |value: &Value, why: String| Refused { path: name.to_owned(), value: value.clone(), why };
        if name != "metadata" {
            return if value.is_string() { Ok(()) } else { Err(refused(value, "must be a string".into())) };
        }
        match object_meta(value) {
            Ok(unknown) => {
                let room = MAX_REPORTED.saturating_sub(self.embedded.len());
                self.embedded.extend(unknown.iter().take(room).map(|path| decode::join(name, path)));
                Ok(())
            }
            Err(error) => Err(refused(value, error.to_string())),
        }
    }

    /// Where the schema has no structure, no member is known. Plain values stay: validation speaks of them.
    fn clear(&mut self, value: &mut Value) -> Outcome {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| self.report(name));
                Ok(())
            }
            Value::Array(list) => list.iter_mut().enumerate().try_for_each(|(index, item)| {
                self.within(|| format!("[{index}]"), |walk| walk.nested(|walk| walk.clear(item)))
            }),
            _ => Ok(()),
        }
    }

    /// Puts a step in front of the paths that are found inside.
    fn within(&mut self, step: impl Fn() -> String, inside: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let (pruned, embedded) = (self.pruned.len(), self.embedded.len());
        inside(self).map_err(|mut refused| {
            if !refused.path.is_empty() {
                refused.path = decode::join(&step(), &refused.path);
            }
            refused
        })?;
        let inside = self.pruned.iter_mut().skip(pruned).chain(self.embedded.iter_mut().skip(embedded));
        inside.for_each(|path| *path = decode::join(&step(), path));
        Ok(())
    }

    /// Notes an unknown field. It does not stay.
    fn report(&mut self, name: &str) -> bool {
        if self.pruned.len() < MAX_REPORTED {
            self.pruned.push(name.to_owned());
        }
        false
    }
}

#[cfg(test)]
mod tests;
