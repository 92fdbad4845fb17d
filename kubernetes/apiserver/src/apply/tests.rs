use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    api::{GroupVersion, StatusError},
    schema::{ListType, MapType, ScalarType, Schema, SchemaNode, SchemaShape, builtin},
};

mod applying;
mod scaling;
mod sets;
mod updating;

const NOW: &str = "2024-05-06T07:08:09Z";

/// An object and the schema of its kind.
struct Fixture {
    schema: Schema,
    api_version: &'static str,
    kind: &'static str,
    object: Option<Value>,
    now: &'static str,
}

impl Fixture {
    fn builtin(api_version: &'static str, kind: &'static str) -> Self {
        let schema = builtin::schema_for_kind(&GroupVersion::parse(api_version).unwrap(), kind).unwrap().clone();
        Self { schema, api_version, kind, object: None, now: NOW }
    }

    fn config_map() -> Self {
        Self::builtin("v1", "ConfigMap")
    }

    /// A custom resource whose spec has lists and maps of every type.
    fn widget() -> Self {
        let text = || Schema::scalar(ScalarType::String);
        let list = |items: Schema, list| of_shape(SchemaShape::List { items: items.into(), list });
        let item = || object([("k", text()), ("v", text())], MapType::Granular);
        let spec = object(
            [
                ("m", list(item(), ListType::Map(vec!["k".into()]))),
                ("s", list(text(), ListType::Set)),
                ("l", list(text(), ListType::Atomic)),
                ("am", object([("x", text()), ("y", text())], MapType::Atomic)),
                ("size", Schema::scalar(ScalarType::Integer)),
                ("free", Schema::default()),
            ],
            MapType::Granular,
        );
        let status = object([("ready", Schema::scalar(ScalarType::Boolean)), ("replicas", text())], MapType::Granular);
        let schema = object([("spec", spec), ("status", status)], MapType::Granular);
        Self { schema, api_version: "example.com/v1", kind: "Widget", object: None, now: NOW }
    }

    fn owner<'a>(&'a self, manager: &'a str, subresource: &'a str) -> FieldManager<'a> {
        let gv = GroupVersion::parse(self.api_version).unwrap();
        let has_status = self.schema.field("status").is_some();
        let custom = self.schema.name.is_empty();
        let reset = reset::reset_fields_of_kind((&gv.group, self.kind), subresource, has_status, custom);
        FieldManager {
            manager,
            api_version: self.api_version,
            kind: self.kind,
            subresource,
            schema: &self.schema,
            reset,
            now: self.now,
            convert: None,
        }
    }

    /// A whole object of the kind, named `a`.
    fn whole(&self, rest: Value) -> Value {
        let mut whole = rest;
        whole["apiVersion"] = self.api_version.into();
        whole["kind"] = self.kind.into();
        whole["metadata"]["name"] = "a".into();
        whole
    }

    fn put(&mut self, manager: &str, object: Value) -> &mut Self {
        let mut object = self.whole(object);
        self.owner(manager, "").update(self.object.as_ref(), &mut object);
        self.object = Some(object);
        self
    }

    fn try_apply(&self, manager: &str, subresource: &str, config: Value, force: bool) -> Result<Value, StatusError> {
        Ok(self.owner(manager, subresource).apply(self.object.as_ref(), &self.whole(config), force)?)
    }

    fn apply(&mut self, manager: &str, config: Value) -> &mut Self {
        self.object = Some(self.try_apply(manager, "", config, false).unwrap());
        self
    }

    fn at(&self, pointer: &str) -> Value {
        self.object.as_ref().unwrap().pointer(pointer).cloned().unwrap_or_default()
    }

    /// The entries: manager, operation, subresource and fields of each.
    fn books(&self) -> Vec<(String, Value)> {
        let entries = self.at("/metadata/managedFields");
        let entry = |entry: &Value| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let who = [text("manager"), text("operation"), text("subresource")];
            (who.join(" ").trim_end().to_owned(), entry["fieldsV1"].clone())
        };
        entries.as_array().into_iter().flatten().map(entry).collect()
    }

    fn expect(&self, books: &[(&str, Value)]) {
        let expected: Vec<(String, Value)> =
            books.iter().map(|(who, what)| ((*who).to_owned(), what.clone())).collect();
        assert_eq!(self.books(), expected);
    }
}

fn of_shape(shape: SchemaShape) -> Schema {
    Schema { shape, ..Schema::default() }
}

fn object<const N: usize>(fields: [(&str, Schema); N], map: MapType) -> Schema {
    let fields = fields.into_iter().map(|(name, schema)| (name.into(), SchemaNode::from(schema))).collect();
    of_shape(SchemaShape::Object { fields, open: false, embedded: false, map })
}

fn set(value: Value) -> FieldSet {
    FieldSet::from_value(&value).unwrap()
}
