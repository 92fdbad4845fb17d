//! What types, kinds and operations are called.

use super::custom;
use crate::{
    registry::{Resource, Subresource},
    schema::builtin,
};

/// The package of what all kinds share.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The name of the type of a resource's objects.
pub(super) fn object_type(resource: &Resource) -> String {
    type_name(resource, &resource.kind)
}

/// The name of the type of its lists.
pub(super) fn list_type(resource: &Resource) -> String {
    type_name(resource, &resource.list_kind)
}

/// The name of the type of a subresource.
pub(super) fn part_type(resource: &Resource, sub: &Subresource) -> String {
    match &sub.gv {
        Some(gv) => builtin::name_of_kind(gv, &sub.kind).unwrap_or_default(),
        None => type_name(resource, &sub.kind),
    }
}

fn type_name(resource: &Resource, kind: &str) -> String {
    if resource.custom.is_some() {
        return custom::type_name(&resource.gv, kind);
    }
    builtin::name_of_kind(&resource.gv, kind).unwrap_or_default()
}

/// A type without its package.
pub(super) fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A kind in a sentence.
pub(super) fn article(kind: &str) -> String {
    let an = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if an { "an" } else { "a" })
}

/// A word with its first letter in upper case.
pub(super) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
