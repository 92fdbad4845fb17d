//! Prunes custom resources: drops fields that are not in their schema.
//!
//! One walk does what kube-apiserver does before it defaults and validates a custom resource: unknown fields
//! are dropped, nulls are dropped where null is neither a value nor replaced by a default, and the metadata of
//! the object and of embedded objects is decoded as `ObjectMeta`. Apart from metadata no types are checked:
//! that is up to validation. Pruning again changes nothing.

use serde_json::{Map, Value};

use super::{
    Schema, SchemaShape, builtin,
    decode::{self, DecodeError, MAX_DEPTH},
};
use crate::api::field;

/// The limit of reported fields, as for built-in kinds.
const MAX_REPORTED_FIELDS: usize = 100;
/// The members of every object, whatever its schema declares.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Prunes an object by the schema of its root. Returns the paths of dropped unknown fields: of its metadata
/// first, then of the rest, then of the metadata of embedded objects.
pub fn prune(object: &mut Value, schema: &Schema) -> Result<Vec<String>, DecodeError> {
    let mut dropped = Vec::new();
    if let Some(metadata) = object.get_mut("metadata") {
        dropped.extend(object_meta(metadata)?.iter().map(|path| decode::join("metadata", path)));
    }
    let mut walk = PruneWalk { root: true, ..PruneWalk::default() };
    walk.value(object, schema).map_err(EmbeddedObjectError::into_error)?;
    walk.pruned.sort();
    walk.embedded.sort();
    dropped.append(&mut walk.pruned);
    dropped.append(&mut walk.embedded);
    Ok(dropped)
}

fn object_meta(metadata: &mut Value) -> Result<Vec<String>, DecodeError> {
    match builtin::schema_by_name(OBJECT_META) {
        Some(schema) => decode::check_types(metadata, schema),
        None => Ok(Vec::new()),
    }
}

#[derive(Default)]
struct PruneWalk {
    depth: u32,
    /// Whether the next object is the root, whose metadata was decoded already.
    root: bool,
    /// Paths relative to the current value, as in `embedded`.
    pruned: Vec<String>,
    embedded: Vec<String>,
}

/// Why an embedded object is invalid.
struct EmbeddedObjectError {
    path: String,
    value: Value,
    why: String,
}

impl EmbeddedObjectError {
    fn into_error(self) -> DecodeError {
        if self.path.is_empty() {
            return DecodeError::text(self.why);
        }
        DecodeError::text(field::FieldError::invalid(self.path, &self.value, &self.why).to_string())
    }
}

type PruneResult = Result<(), EmbeddedObjectError>;

impl PruneWalk {
    fn value(&mut self, value: &mut Value, schema: &Schema) -> PruneResult {
        match (value, &schema.shape) {
            (Value::Object(members), SchemaShape::Object { .. }) => self.nested(|walk| walk.object(members, schema)),
            (Value::Object(members), SchemaShape::Map { values, .. }) => self.nested(|walk| walk.map(members, values)),
            (Value::Array(list), SchemaShape::List { items, .. }) => self.nested(|walk| {
                let mut list = list.iter_mut().enumerate();
                list.try_for_each(|(index, item)| {
                    walk.with_path_prefix(|| format!("[{index}]"), |walk| walk.value(item, items))
                })
            }),
            (_, SchemaShape::Any) | (Value::Array(_), SchemaShape::Object { open: true, .. }) => Ok(()),
            (other, _) => self.nested(|walk| walk.clear(other)),
        }
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> PruneResult) -> PruneResult {
        if self.depth == MAX_DEPTH {
            return Err(EmbeddedObjectError {
                path: String::new(),
                value: Value::Null,
                why: "exceeded max depth".into(),
            });
        }
        self.depth += 1;
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, members: &mut Map<String, Value>, schema: &Schema) -> PruneResult {
        let SchemaShape::Object { fields, open, embedded, .. } = &schema.shape else { return Ok(()) };
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
                    outcome = self.with_path_prefix(|| name.clone(), |walk| walk.value(value, node));
                    true
                }
                None => *open || self.report(name),
            }
        });
        outcome
    }

    fn map(&mut self, members: &mut Map<String, Value>, values: &Schema) -> PruneResult {
        // A root that is a map still has metadata.
        let is_root = std::mem::take(&mut self.root);
        let mut outcome = Ok(());
        members.retain(|name, value| {
            if outcome.is_err() || is_root && META_FIELDS.contains(&name.as_str()) {
                return true;
            }
            if value.is_null() {
                return values.nullable || values.default.is_some();
            }
            outcome = self.with_path_prefix(|| name.clone(), |walk| walk.value(value, values));
            true
        });
        outcome
    }

    /// Decodes a member that every embedded object has.
    fn meta_field(&mut self, name: &str, value: &mut Value) -> PruneResult {
        let refused =
            |value: &Value, why: String| EmbeddedObjectError { path: name.to_owned(), value: value.clone(), why };
        if name != "metadata" {
            return if value.is_string() { Ok(()) } else { Err(refused(value, "must be a string".into())) };
        }
        match object_meta(value) {
            Ok(unknown) => {
                let room = MAX_REPORTED_FIELDS.saturating_sub(self.embedded.len());
                self.embedded.extend(unknown.iter().take(room).map(|path| decode::join(name, path)));
                Ok(())
            }
            Err(error) => Err(refused(value, error.to_string())),
        }
    }

    /// Without a structure in the schema, every member is unknown. Scalars stay: validation reports them.
    fn clear(&mut self, value: &mut Value) -> PruneResult {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| self.report(name));
                Ok(())
            }
            Value::Array(list) => list.iter_mut().enumerate().try_for_each(|(index, item)| {
                self.with_path_prefix(|| format!("[{index}]"), |walk| walk.nested(|walk| walk.clear(item)))
            }),
            _ => Ok(()),
        }
    }

    /// Prepends a step to the paths that are found inside.
    fn with_path_prefix(
        &mut self,
        step: impl Fn() -> String,
        inside: impl FnOnce(&mut Self) -> PruneResult,
    ) -> PruneResult {
        let pruned = self.pruned.len();
        let embedded = self.embedded.len();
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

    /// Reports an unknown field, which is dropped.
    fn report(&mut self, name: &str) -> bool {
        if self.pruned.len() < MAX_REPORTED_FIELDS {
            self.pruned.push(name.to_owned());
        }
        false
    }
}

#[cfg(test)]
mod tests;
