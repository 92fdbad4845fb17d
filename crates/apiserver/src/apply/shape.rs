//! What a schema says about ownership: what is a field of its own, and how the items of a list are told apart.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

use super::{element::Element, fieldset::Set};
use crate::schema::{ListType, MapType, Scalar, Schema, Shape, builtin};

static ANY: LazyLock<Schema> = LazyLock::new(Schema::default);
static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema::scalar(Scalar::String));
static META: LazyLock<&'static Schema> =
    LazyLock::new(|| builtin::by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or(&ANY));

/// A schema at a depth. At the top stand `apiVersion`, `kind` and `metadata`, also where a custom resource's schema has none.
#[derive(Clone, Copy)]
pub(super) struct Place<'s> {
    pub(super) schema: &'s Schema,
    pub(super) depth: usize,
}

/// What is owned at a place.
pub(super) enum Owned<'s> {
    /// The value as a whole.
    Leaf,
    /// Each member by itself.
    Members,
    /// Each item by itself.
    Items(&'s Schema, &'s ListType),
}

/// A member of an object.
#[derive(Clone)]
pub(super) struct Member<'s> {
    pub(super) place: Place<'s>,
    /// Its name, shared where the schema has it.
    pub(super) name: Option<&'s Arc<str>>,
    /// The schema names it, or its keys are data.
    pub(super) declared: bool,
}

impl<'s> Place<'s> {
    pub(super) fn root(schema: &'s Schema) -> Self {
        Self { schema, depth: 0 }
    }

    /// What is owned here, of a value like this one.
    pub(super) fn owned(self, value: &Value) -> Owned<'s> {
        if self.depth >= super::MAX_PATH {
            return Owned::Leaf;
        }
        match &self.schema.shape {
            Shape::Any if value.is_object() => Owned::Members,
            Shape::Any | Shape::Scalar(_) => Owned::Leaf,
            Shape::Object { map: MapType::Atomic, .. } | Shape::Map { map: MapType::Atomic, .. } => Owned::Leaf,
            Shape::Object { .. } | Shape::Map { .. } => Owned::Members,
            Shape::List { list: ListType::Atomic, .. } => Owned::Leaf,
            Shape::List { items, list } => Owned::Items(items, list),
        }
    }

    /// Whether this is the `metadata` of the object.
    pub(super) fn is_metadata(self) -> bool {
        self.depth == 1 && std::ptr::eq(self.schema, *META)
    }

    pub(super) fn item(self, items: &'s Schema) -> Self {
        Self { schema: items, depth: self.depth + 1 }
    }

    pub(super) fn member(self, name: &str) -> Member<'s> {
        let place = |schema| Place { schema, depth: self.depth + 1 };
        if self.depth == 0 {
            let known: Option<&'s Schema> = match name {
                "metadata" => Some(*META),
                "apiVersion" | "kind" => Some(&*TEXT),
                _ => None,
            };
            if let Some(schema) = known {
                return Member { place: place(schema), name: None, declared: true };
            }
        }
        match &self.schema.shape {
            Shape::Object { fields, .. } => match fields.get_key_value(name) {
                Some((name, node)) => Member { place: place(node), name: Some(name), declared: true },
                None => Member { place: place(&ANY), name: None, declared: false },
            },
            Shape::Map { values, .. } => Member { place: place(values), name: None, declared: false },
            _ => Member { place: place(&ANY), name: None, declared: false },
        }
    }

    /// The place below an element of a set, and whether the schema names it.
    pub(super) fn step(self, element: &Element) -> (Self, bool) {
        match (element, &self.schema.shape) {
            (Element::Field(name), _) => {
                let member = self.member(name);
                (member.place, member.declared)
            }
            (_, Shape::List { items, .. }) => (self.item(items), false),
            _ => (Place { schema: &ANY, depth: self.depth + 1 }, false),
        }
    }

    /// Whether what is here is owned as a whole although it has parts.
    fn is_atomic(self) -> bool {
        match &self.schema.shape {
            Shape::Object { map, .. } | Shape::Map { map, .. } => *map == MapType::Atomic,
            Shape::List { list, .. } => *list == ListType::Atomic,
            Shape::Any | Shape::Scalar(_) => false,
        }
    }

    /// A set that was written when the schema was another: who owned a part of what is one whole now, owns the whole.
    pub(super) fn reconcile(self, set: Set) -> Set {
        let mut reconciled = Set::default();
        for (element, mut node) in set.into_entries() {
            let (below, _) = self.step(&element);
            if !node.children.is_empty() {
                let atomic = below.is_atomic();
                node.children = if atomic { Set::default() } else { below.reconcile(node.children) };
                node.member |= atomic;
            }
            reconciled.push(element, node);
        }
        reconciled
    }

    /// Whether an object here may have members that the schema does not name.
    pub(super) fn is_open(self) -> bool {
        match &self.schema.shape {
            Shape::Object { fields, open, embedded, .. } => *open || *embedded || fields.is_empty(),
            _ => true,
        }
    }

    /// What a member of a built-in type is when it is absent: such a member is always there.
    pub(super) fn always(self, name: &str) -> Option<&'s Value> {
        self.schema.always.iter().find(|(always, _)| &**always == name).map(|(_, value)| value)
    }
}

impl Member<'_> {
    pub(super) fn element(&self, name: &str) -> Element {
        Element::Field(self.name.map_or_else(|| name.into(), Arc::clone))
    }
}

/// The items of a list by what tells them apart. Several items may be the same.
pub(super) type Index<'v> = BTreeMap<Element, Vec<&'v Value>>;

/// The items of a list, told apart.
pub(super) fn index<'v>(list: &'v [Value], items: &Schema, of: &ListType) -> Result<Index<'v>, String> {
    let mut index = Index::new();
    for (place, item) in list.iter().enumerate() {
        let element = element(item, items, of).map_err(|error| format!("element {place}: {error}"))?;
        index.entry(element).or_default().push(item);
    }
    Ok(index)
}

/// What tells an item from the others.
pub(super) fn element(item: &Value, items: &Schema, list: &ListType) -> Result<Element, String> {
    match (list, item) {
        (ListType::Atomic, _) => Err("invalid indexing of non-associative list".to_owned()),
        (ListType::Set, Value::Object(_)) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        (ListType::Set, Value::Array(_)) => Err("not supported: associative list with lists as elements".to_owned()),
        (ListType::Set, Value::Null) => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        (ListType::Set, value) => Ok(Element::Value(value.clone())),
        (ListType::Map(keys), Value::Object(members)) => key(members, items, keys),
        (ListType::Map(_), Value::Null) => Err("associative list with keys may not have a null element".to_owned()),
        (ListType::Map(_), _) => Err("associative list with keys may not have non-map elements".to_owned()),
    }
}

fn key(members: &Map<String, Value>, items: &Schema, keys: &[Arc<str>]) -> Result<Element, String> {
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
    Ok(Element::Key(found))
}

/// A key that an item does not have: the schema's default, or in built-in types the zero that is written for it.
fn key_default<'s>(items: &'s Schema, name: &str) -> Option<&'s Value> {
    let default = items.field(name).and_then(|field| field.default.as_ref());
    default.or_else(|| Place::root(items).always(name)).filter(|value| !value.is_null())
}
