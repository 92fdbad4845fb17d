//! The schema as ownership sees it: the granularity of ownership, and the identity of list items.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

use super::{element::PathElement, fieldset::FieldSet};
use crate::schema::{ListType, MapType, ScalarType, Schema, SchemaShape, builtin};

static UNTYPED_SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::default);
static STRING_SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::scalar(ScalarType::String));
static OBJECT_META_SCHEMA: LazyLock<&'static Schema> = LazyLock::new(|| {
    builtin::schema_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or(&UNTYPED_SCHEMA)
});

/// A schema at a depth. The top level has `apiVersion`, `kind` and `metadata`, even if a custom resource's
/// schema has not.
#[derive(Clone, Copy)]
pub(super) struct SchemaPosition<'s> {
    pub(super) schema: &'s Schema,
    pub(super) depth: usize,
}

/// The unit of ownership at a position.
pub(super) enum OwnershipUnit<'s> {
    /// The value as a whole.
    Leaf,
    Members,
    Items(&'s Schema, &'s ListType),
}

/// A member of an object.
#[derive(Clone)]
pub(super) struct ObjectMember<'s> {
    pub(super) place: SchemaPosition<'s>,
    /// The name, shared with the schema where it is declared there.
    pub(super) name: Option<&'s Arc<str>>,
    /// Whether the schema declares the name, or names are data.
    pub(super) declared: bool,
}

impl<'s> SchemaPosition<'s> {
    pub(super) fn root(schema: &'s Schema) -> Self {
        Self { schema, depth: 0 }
    }

    /// The unit of ownership for this value.
    pub(super) fn ownership_unit(self, value: &Value) -> OwnershipUnit<'s> {
        if self.depth >= super::MAX_PATH_ELEMENTS {
            return OwnershipUnit::Leaf;
        }
        match &self.schema.shape {
            SchemaShape::Any if value.is_object() => OwnershipUnit::Members,
            SchemaShape::Any | SchemaShape::Scalar(_) => OwnershipUnit::Leaf,
            SchemaShape::Object { map: MapType::Atomic, .. } | SchemaShape::Map { map: MapType::Atomic, .. } => {
                OwnershipUnit::Leaf
            }
            SchemaShape::Object { .. } | SchemaShape::Map { .. } => OwnershipUnit::Members,
            SchemaShape::List { list: ListType::Atomic, .. } => OwnershipUnit::Leaf,
            SchemaShape::List { items, list } => OwnershipUnit::Items(items, list),
        }
    }

    pub(super) fn is_metadata(self) -> bool {
        self.depth == 1 && std::ptr::eq(self.schema, *OBJECT_META_SCHEMA)
    }

    pub(super) fn item(self, items: &'s Schema) -> Self {
        Self { schema: items, depth: self.depth + 1 }
    }

    pub(super) fn member(self, name: &str) -> ObjectMember<'s> {
        let place = |schema| SchemaPosition { schema, depth: self.depth + 1 };
        if self.depth == 0 {
            let known: Option<&'s Schema> = match name {
                "metadata" => Some(*OBJECT_META_SCHEMA),
                "apiVersion" | "kind" => Some(&*STRING_SCHEMA),
                _ => None,
            };
            if let Some(schema) = known {
                return ObjectMember { place: place(schema), name: None, declared: true };
            }
        }
        match &self.schema.shape {
            SchemaShape::Object { fields, .. } => match fields.get_key_value(name) {
                Some((name, node)) => ObjectMember { place: place(node), name: Some(name), declared: true },
                None => ObjectMember { place: place(&UNTYPED_SCHEMA), name: None, declared: false },
            },
            SchemaShape::Map { values, .. } => ObjectMember { place: place(values), name: None, declared: false },
            _ => ObjectMember { place: place(&UNTYPED_SCHEMA), name: None, declared: false },
        }
    }

    /// The position below an element of a set, and whether the schema declares it.
    pub(super) fn descend(self, element: &PathElement) -> (Self, bool) {
        match (element, &self.schema.shape) {
            (PathElement::Field(name), _) => {
                let member = self.member(name);
                (member.place, member.declared)
            }
            (_, SchemaShape::List { items, .. }) => (self.item(items), false),
            _ => (SchemaPosition { schema: &UNTYPED_SCHEMA, depth: self.depth + 1 }, false),
        }
    }

    /// Whether the value is owned as a whole although it has parts.
    fn is_atomic(self) -> bool {
        match &self.schema.shape {
            SchemaShape::Object { map, .. } | SchemaShape::Map { map, .. } => *map == MapType::Atomic,
            SchemaShape::List { list, .. } => *list == ListType::Atomic,
            SchemaShape::Any | SchemaShape::Scalar(_) => false,
        }
    }

    /// Adjusts a set to a changed schema: the owner of a part of a value that is atomic now owns the whole.
    pub(super) fn reconcile(self, set: FieldSet) -> FieldSet {
        let mut reconciled = FieldSet::default();
        for (element, mut node) in set.into_entries() {
            let (below, _) = self.descend(&element);
            if !node.children.is_empty() {
                let atomic = below.is_atomic();
                node.children = if atomic { FieldSet::default() } else { below.reconcile(node.children) };
                node.member |= atomic;
            }
            reconciled.push(element, node);
        }
        reconciled
    }

    /// Whether an object may have undeclared members.
    pub(super) fn is_open(self) -> bool {
        match &self.schema.shape {
            SchemaShape::Object { fields, open, embedded, .. } => *open || *embedded || fields.is_empty(),
            _ => true,
        }
    }

    /// The implied value of an absent member of a built-in type, if it has one.
    pub(super) fn implied_value(self, name: &str) -> Option<&'s Value> {
        self.schema.always.iter().find(|(always, _)| &**always == name).map(|(_, value)| value)
    }
}

impl ObjectMember<'_> {
    pub(super) fn element(&self, name: &str) -> PathElement {
        PathElement::Field(self.name.map_or_else(|| name.into(), Arc::clone))
    }
}

/// The items of a list by their path element. Several items may have the same.
pub(super) type ItemIndex<'v> = BTreeMap<PathElement, Vec<&'v Value>>;

pub(super) fn index_items<'v>(list: &'v [Value], items: &Schema, of: &ListType) -> Result<ItemIndex<'v>, String> {
    let mut index = ItemIndex::new();
    for (place, item) in list.iter().enumerate() {
        let element = item_element(item, items, of).map_err(|error| format!("element {place}: {error}"))?;
        index.entry(element).or_default().push(item);
    }
    Ok(index)
}

/// The path element of an item.
pub(super) fn item_element(item: &Value, items: &Schema, list: &ListType) -> Result<PathElement, String> {
    match (list, item) {
        (ListType::Atomic, _) => Err("invalid indexing of non-associative list".to_owned()),
        (ListType::Set, Value::Object(_)) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        (ListType::Set, Value::Array(_)) => Err("not supported: associative list with lists as elements".to_owned()),
        (ListType::Set, Value::Null) => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        (ListType::Set, value) => Ok(PathElement::Value(value.clone())),
        (ListType::Map(keys), Value::Object(members)) => key_element(members, items, keys),
        (ListType::Map(_), Value::Null) => Err("associative list with keys may not have a null element".to_owned()),
        (ListType::Map(_), _) => Err("associative list with keys may not have non-map elements".to_owned()),
    }
}

fn key_element(members: &Map<String, Value>, items: &Schema, keys: &[Arc<str>]) -> Result<PathElement, String> {
    let mut found: Vec<(Arc<str>, Value)> = Vec::with_capacity(keys.len());
    for name in keys {
        let value = members.get(&**name).or_else(|| key_default(items, name));
        found.extend(value.map(|value| (Arc::clone(name), value.clone())));
    }
    if found.is_empty() && !keys.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(PathElement::Key(found))
}

/// The value of an absent key: the schema's default or, in built-in types, the zero value that is written for
/// it.
fn key_default<'s>(items: &'s Schema, name: &str) -> Option<&'s Value> {
    let default = items.field(name).and_then(|field| field.default.as_ref());
    default.or_else(|| SchemaPosition::root(items).implied_value(name)).filter(|value| !value.is_null())
}
