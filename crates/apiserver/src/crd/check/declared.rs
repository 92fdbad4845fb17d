//! Schemas as cel-go's cost estimation sees them: types, and how large their values can be in a request.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    cel::check as cel,
    crd::{
        structural::{array, flag, text},
        validate::escaped,
    },
};

/// Fields of objects, by the names of their types.
type Structs = HashMap<Arc<str>, Vec<(String, cel::Type)>>;

/// kube-apiserver's limit of a request, by which everything without a limit of its own is bounded.
const MAX_REQUEST: u64 = 3 << 20;

/// Lengths of values in JSON.
const MIN_STRING: u64 = 2;
const MIN_NUMBER: u64 = 1;
const MIN_BOOL: u64 = 4;
const DURATION: (u64, u64) = (3, 32);
const DATE: u64 = 12;
const DATE_TIME: (u64, u64) = (21, 27);

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Duration,
    Timestamp,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    /// An object with fields of its own.
    Object,
    /// Any, and said to be so.
    Dyn,
    /// Not followed here.
    Unknown,
}

/// A part of a schema.
#[derive(Clone, Copy, Debug)]
pub(super) enum Declared<'s> {
    /// A schema; `true` for a resource, which has metadata.
    Schema(&'s Map<String, Value>, bool),
    /// `metadata` of a resource, of which only the names are seen.
    Metadata,
    /// A text without limits.
    Text,
}

impl<'s> Declared<'s> {
    pub(super) fn kind(self) -> Type {
        let schema = match self {
            Self::Text => return Type::Text,
            Self::Metadata => return Type::Object,
            Self::Schema(schema, _) => schema,
        };
        if flag(schema, "x-kubernetes-int-or-string") {
            return Type::Dyn;
        }
        match text(schema, "type") {
            "boolean" => Type::Bool,
            "integer" => Type::Int,
            "number" => Type::Double,
            "string" => match text(schema, "format") {
                "byte" => Type::Bytes,
                "duration" => Type::Duration,
                "date" | "date-time" => Type::Timestamp,
                _ => Type::Text,
            },
            "array" => Type::List(Box::new(self.element().map_or(Type::Unknown, Self::kind))),
            "object" => match self.element() {
                Some(values) => Type::Map(Box::new(Type::Text), Box::new(values.kind())),
                None => Type::Object,
            },
            _ => Type::Unknown,
        }
    }

    /// Its type for cel-go's checker, under this name if it is an object, with the types of all parts. None where the schema does not
    /// say what a value is: expressions cannot name such a part.
    pub(super) fn cel_type(self, name: &str, structs: &mut Structs) -> Option<cel::Type> {
        Some(match self.kind() {
            Type::Bool => cel::Type::Bool,
            Type::Int => cel::Type::Int,
            Type::Uint => cel::Type::Uint,
            Type::Double => cel::Type::Double,
            Type::Text => cel::Type::String,
            Type::Bytes => cel::Type::Bytes,
            Type::Null => cel::Type::Null,
            Type::Duration => cel::Type::Duration,
            Type::Timestamp => cel::Type::Timestamp,
            Type::Dyn => cel::Type::Dyn,
            Type::List(_) => cel::Type::list(self.element()?.cel_type(&format!("{name}.@idx"), structs)?),
            Type::Map(..) => {
                let values = self.element()?.cel_type(&format!("{name}.@elem"), structs)?;
                cel::Type::map(cel::Type::String, values)
            }
            Type::Object => {
                let mut fields = Vec::new();
                for field in self.field_names() {
                    let of = self.field(&field).and_then(|of| of.cel_type(&format!("{name}.{field}"), structs));
                    fields.extend(of.map(|of| (field, of)));
                }
                structs.insert(Arc::from(name), fields);
                cel::Type::object(name)
            }
            Type::Unknown => return None,
        })
    }

    /// The names of all fields, as expressions write them.
    fn field_names(self) -> Vec<String> {
        let (schema, is_resource) = match self {
            Self::Text => return Vec::new(),
            Self::Metadata => return vec!["name".to_owned(), "generateName".to_owned()],
            Self::Schema(schema, is_resource) => (schema, is_resource),
        };
        let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut names: Vec<String> = own.map(|(name, _)| escaped(name)).collect();
        for name in ["apiVersion", "kind", "metadata"] {
            if is_resource && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// The items of a list, or the values of a map.
    pub(super) fn element(self) -> Option<Self> {
        let Self::Schema(schema, _) = self else { return None };
        let part = match text(schema, "type") {
            "array" => schema.get("items"),
            "object" => schema.get("additionalProperties"),
            _ => None,
        };
        part.and_then(Value::as_object).map(of)
    }

    /// A field, by its name in expressions.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Metadata => matches!(name, "name" | "generateName").then_some(Self::Text),
            Self::Schema(_, true) if name == "metadata" => Some(Self::Metadata),
            Self::Schema(schema, is_resource) => {
                let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
                let found = all.into_iter().find(|(field, _)| escaped(field) == name);
                let found = found.and_then(|(_, field)| field.as_object()).map(of);
                found.or_else(|| (is_resource && matches!(name, "apiVersion" | "kind")).then_some(Self::Text))
            }
            Self::Text => None,
        }
    }

    /// The most items, entries or characters that a value can have.
    pub(super) fn max_elements(self) -> u64 {
        let schema = match self {
            Self::Text => return MAX_REQUEST - 2,
            Self::Metadata => return 0,
            Self::Schema(schema, _) => schema,
        };
        let limit =
            |name: &str| schema.get(name).and_then(Value::as_i64).map(|limit| u64::try_from(limit).unwrap_or(0));
        let unlimited = match text(schema, "format") {
            "duration" => DURATION.1,
            "date" => DATE,
            "date-time" => DATE_TIME.1,
            _ => MAX_REQUEST - 2,
        };
        match self.kind() {
            // A character has up to four bytes.
            Type::Dyn => limit("maxLength").map_or(MAX_REQUEST - 2, |limit| limit.saturating_mul(4)),
            Type::Bytes => limit("maxLength").unwrap_or(unlimited),
            Type::Text => match (limit("maxLength"), array(schema, "enum")) {
                (Some(limit), _) => limit.saturating_mul(4),
                (None, []) => unlimited,
                (None, all) => all.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as u64,
            },
            Type::Duration | Type::Timestamp => unlimited,
            Type::List(_) => {
                let min = self.element().map_or(0, Self::min_size);
                limit("maxItems").unwrap_or((MAX_REQUEST - 2) / (min + 1))
            }
            Type::Map(..) => {
                let min = self.element().map_or(0, Self::min_size);
                limit("maxProperties").unwrap_or((MAX_REQUEST - 2) / (min + 6))
            }
            _ => 0,
        }
    }

    /// The shortest that a value can be in JSON.
    pub(super) fn min_size(self) -> u64 {
        let schema = match self {
            Self::Text => return MIN_STRING,
            Self::Metadata => return 2,
            Self::Schema(schema, _) => schema,
        };
        match self.kind() {
            Type::Bool => MIN_BOOL,
            Type::Int | Type::Uint | Type::Double | Type::Dyn => MIN_NUMBER,
            Type::Duration => DURATION.0,
            Type::Timestamp if text(schema, "format") == "date" => DATE,
            Type::Timestamp => DATE_TIME.0,
            Type::Object => {
                let required = array(schema, "required").iter().filter_map(Value::as_str);
                let size = |name: &str| {
                    let field = schema.get("properties")?.get(name)?.as_object()?;
                    let has_default = field.get("default").is_some_and(|default| !default.is_null());
                    (!has_default).then(|| name.len() as u64 + of(field).min_size() + 4)
                };
                2 + required.filter_map(size).sum::<u64>()
            }
            _ => MIN_STRING,
        }
    }

    /// How often a value can be in a request, at most.
    pub(super) fn max_cardinality(self) -> u64 {
        MAX_REQUEST / (self.min_size() + 1)
    }
}

fn of(schema: &Map<String, Value>) -> Declared<'_> {
    Declared::Schema(schema, flag(schema, "x-kubernetes-embedded-resource"))
}
