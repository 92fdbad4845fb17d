//! Compiles a schema into its checks.

use std::{collections::BTreeMap, sync::Arc};

use super::{ChildValidators, ListType, NodeValidator, SchemaPattern, StringFormat, SubtreeFeatures, ValidationRule};
use crate::schema::{ScalarType, Schema, SchemaNode, SchemaShape};

/// The checks of a whole custom resource.
pub(super) fn root(node: &SchemaNode) -> NodeValidator {
    check(node, true)
}

/// The checks of a part of a custom resource.
pub(super) fn part(node: &SchemaNode) -> NodeValidator {
    check(node, matches!(node.shape, SchemaShape::Object { embedded: true, .. }))
}

fn check(node: &SchemaNode, is_resource: bool) -> NodeValidator {
    let mut check = NodeValidator { node: node.clone(), types: types(node), is_resource, ..NodeValidator::default() };
    check.parts = parts(node, is_resource);
    if let Some(rules) = &node.rules {
        let all = |nodes: &[SchemaNode]| nodes.iter().map(part).collect();
        check.format = rules.format.as_deref().and_then(|name| StringFormat::lookup_format(name, check.types));
        check.pattern = rules.pattern.as_deref().map(SchemaPattern::new);
        check.all_of = all(&rules.all_of);
        check.any_of = all(&rules.any_of);
        check.one_of = all(&rules.one_of);
        check.not = rules.not.as_ref().map(|not| Box::new(part(not)));
        check.rules = rules.validations.iter().filter_map(|rule| ValidationRule::compile(rule, node)).collect();
    }
    check.subtree = within(&check);
    check
}

fn within(check: &NodeValidator) -> SubtreeFeatures {
    let embedded = matches!(check.node.shape, SchemaShape::Object { embedded: true, .. });
    let mut own = SubtreeFeatures { rules: !check.rules.is_empty(), keyed_lists: false, embedded };
    let mut add = |part: &NodeValidator| {
        own.rules |= part.subtree.rules;
        own.keyed_lists |= part.subtree.keyed_lists;
        own.embedded |= part.subtree.embedded;
    };
    match &check.parts {
        ChildValidators::None => {}
        ChildValidators::Fields(fields) => fields.values().for_each(add),
        ChildValidators::Values(values) => add(values),
        ChildValidators::Items(items, list) => {
            add(items);
            own.keyed_lists |= *list != ListType::Atomic;
        }
    }
    own
}

fn parts(schema: &Schema, is_resource: bool) -> ChildValidators {
    match &schema.shape {
        SchemaShape::Any | SchemaShape::Scalar(_) => ChildValidators::None,
        SchemaShape::Object { fields, .. } => ChildValidators::Fields(self::fields(fields, is_resource)),
        SchemaShape::Map { values, .. } => ChildValidators::Values(Box::new(part(values))),
        SchemaShape::List { items, list } => ChildValidators::Items(Box::new(part(items)), list.clone()),
    }
}

fn fields(fields: &BTreeMap<Arc<str>, SchemaNode>, is_resource: bool) -> BTreeMap<Arc<str>, NodeValidator> {
    let checked = |name: &str, node: &SchemaNode| match name {
        "metadata" if is_resource => metadata(node),
        "apiVersion" | "kind" if is_resource && node.rules.is_none() => None,
        _ => Some(part(node)),
    };
    fields.iter().filter_map(|(name, node)| Some((Arc::clone(name), checked(name, node)?))).collect()
}

/// The checks of `metadata`, of which a CRD can only restrict the name.
fn metadata(node: &SchemaNode) -> Option<NodeValidator> {
    let SchemaShape::Object { fields, .. } = &node.shape else { return None };
    let restricted = ["name", "generateName"].into_iter().filter_map(|name| {
        let node = fields.get(name).filter(|node| matches!(node, SchemaNode::Own(_)) && node.rules.is_some())?;
        Some((Arc::from(name), part(node)))
    });
    let fields: BTreeMap<_, _> = restricted.collect();
    (!fields.is_empty()).then(|| NodeValidator { parts: ChildValidators::Fields(fields), ..NodeValidator::default() })
}

fn types(schema: &Schema) -> &'static [&'static str] {
    if schema.rules.as_ref().is_some_and(|rules| rules.untyped) {
        return &[];
    }
    match &schema.shape {
        SchemaShape::Any => &[],
        SchemaShape::Object { .. } | SchemaShape::Map { .. } => &["object"],
        SchemaShape::List { .. } => &["array"],
        SchemaShape::Scalar(scalar) => match scalar {
            ScalarType::Boolean => &["boolean"],
            ScalarType::Int32 | ScalarType::Int64 | ScalarType::Integer => &["integer"],
            ScalarType::Double => &["number"],
            ScalarType::IntOrString => &["integer", "string"],
            _ => &["string"],
        },
    }
}
