//! The names of types, kinds and operations.

use super::custom;
use crate::{
    registry::{ServedResource, Subresource},
    schema::builtin,
};

/// The package of types that all kinds share.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

pub(super) fn object_type(resource: &ServedResource) -> String {
    type_name(resource, &resource.kind)
}

/// The name of the type of its lists.
pub(super) fn list_type(resource: &ServedResource) -> String {
    type_name(resource, &resource.list_kind)
}

pub(super) fn part_type(resource: &ServedResource, sub: &Subresource) -> String {
    match &sub.gv {
        Some(gv) => builtin::type_name_for_kind(gv, &sub.kind).unwrap_or_default(),
        None => type_name(resource, &sub.kind),
    }
}

fn type_name(resource: &ServedResource, kind: &str) -> String {
    if resource.custom.is_some() {
        return custom::type_name(&resource.gv, kind);
    }
    builtin::type_name_for_kind(&resource.gv, kind).unwrap_or_default()
}

/// A type name without its package.
pub(super) fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A kind with its article.
pub(super) fn article(kind: &str) -> String {
    let an = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if an { "an" } else { "a" })
}

pub(super) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
