//! From a schema to its checks.

use std::{collections::BTreeMap, sync::Arc};

use super::{Check, Format, ListType, Parts, Pattern, Rule, Within};
use crate::schema::{Node, Scalar, Schema, Shape};

/// The checks of a whole custom resource.
pub(super) fn root(node: &Node) -> Check {
    check(node, true)
}

/// The checks of a part of one.
pub(super) fn part(node: &Node) -> Check {
    check(node, matches!(node.shape, Shape::Object { embedded: true, .. }))
}

fn check(node: &Node, is_resource: bool) -> Check {
    let mut check = Check { node: node.clone(), types: types(node), is_resource, ..Check::default() };
    check.parts = parts(node, is_resource);
    if let Some(rules) = &node.rules {
        let all = |nodes: &[Node]| nodes.iter().map(part).collect();
        check.format = rules.format.as_deref().and_then(|name| Format::of(name, check.types));
        check.pattern = rules.pattern.as_deref().map(Pattern::new);
        check.all_of = all(&rules.all_of);
        check.any_of = all(&rules.any_of);
        check.one_of = all(&rules.one_of);
        check.not = rules.not.as_ref().map(|not| Box::new(part(not)));
        check.rules = rules.validations.iter().filter_map(|rule| Rule::compile(rule, node)).collect();
    }
    check.within = within(&check);
    check
}

fn within(check: &Check) -> Within {
    let embedded = matches!(check.node.shape, Shape::Object { embedded: true, .. });
    let mut own = Within { rules: !check.rules.is_empty(), keyed_lists: false, embedded };
    let mut add = |part: &Check| {
        own.rules |= part.within.rules;
        own.keyed_lists |= part.within.keyed_lists;
        own.embedded |= part.within.embedded;
    };
    match &check.parts {
        Parts::None => {}
        Parts::Fields(fields) => fields.values().for_each(add),
        Parts::Values(values) => add(values),
        Parts::Items(items, list) => {
            add(items);
            own.keyed_lists |= *list != ListType::Atomic;
        }
    }
    own
}

fn parts(schema: &Schema, is_resource: bool) -> Parts {
    match &schema.shape {
        Shape::Any | Shape::Scalar(_) => Parts::None,
        Shape::Object { fields, .. } => Parts::Fields(self::fields(fields, is_resource)),
        Shape::Map { values, .. } => Parts::Values(Box::new(part(values))),
        Shape::List { items, list } => Parts::Items(Box::new(part(items)), list.clone()),
    }
}

fn fields(fields: &BTreeMap<Arc<str>, Node>, is_resource: bool) -> BTreeMap<Arc<str>, Check> {
    let checked = |name: &str, node: &Node| match name {
        "metadata" if is_resource => metadata(node),
        "apiVersion" | "kind" if is_resource && node.rules.is_none() => None,
        _ => Some(part(node)),
    };
    fields.iter().filter_map(|(name, node)| Some((Arc::clone(name), checked(name, node)?))).collect()
}

/// Of `metadata` a CRD can only restrict the name.
fn metadata(node: &Node) -> Option<Check> {
    let Shape::Object { fields, .. } = &node.shape else { return None };
    let restricted = ["name", "generateName"].into_iter().filter_map(|name| {
        let node = fields.get(name).filter(|node| matches!(node, Node::Own(_)) && node.rules.is_some())?;
        Some((Arc::from(name), part(node)))
    });
    let fields: BTreeMap<_, _> = restricted.collect();
    (!fields.is_empty()).then(|| Check { parts: Parts::Fields(fields), ..Check::default() })
}

fn types(schema: &Schema) -> &'static [&'static str] {
    if schema.rules.as_ref().is_some_and(|rules| rules.untyped) {
        return &[];
    }
    match &schema.shape {
        Shape::Any => &[],
        Shape::Object { .. } | Shape::Map { .. } => &["object"],
        Shape::List { .. } => &["array"],
        Shape::Scalar(scalar) => match scalar {
            Scalar::Boolean => &["boolean"],
            Scalar::Int32 | Scalar::Int64 | Scalar::Integer => &["integer"],
            Scalar::Double => &["number"],
            Scalar::IntOrString => &["integer", "string"],
            _ => &["string"],
        },
    }
}
