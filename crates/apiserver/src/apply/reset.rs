//! Which fields a request cannot change, whatever it sends, and so does not come to own.

use std::sync::LazyLock;

use super::fieldset::Set;
use crate::registry::Resource;

static NOTHING: LazyLock<Set> = LazyLock::new(Set::default);
static STATUS: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["status"]]));
static SPEC: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["spec"]]));
static SPEC_AND_LABELS: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["spec"], &["metadata", "labels"]]));
static SPEC_AND_META: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["spec"], &["metadata"]]));
static POD_STATUS: LazyLock<Set> =
    LazyLock::new(|| Set::of(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]));

/// The fields that a path of a resource resets. `subresource` is empty for the main path.
pub fn reset_fields(resource: &Resource, subresource: &str) -> &'static Set {
    let kind = (&*resource.gv.group, &*resource.kind);
    reset(kind, subresource, resource.has_status(), resource.custom.is_some())
}

pub(super) fn reset(kind: (&str, &str), subresource: &str, has_status: bool, custom: bool) -> &'static Set {
    match (subresource, kind) {
        ("", _) if has_status => &STATUS,
        ("finalize", ("", "Namespace")) => &STATUS,
        ("status", _) if custom => &SPEC_AND_META,
        ("status", ("apps", "Deployment")) => &SPEC_AND_LABELS,
        ("status", ("", "Pod")) => &POD_STATUS,
        ("status", ("apiextensions.k8s.io", "CustomResourceDefinition")) => &SPEC_AND_META,
        ("status", _) => &SPEC,
        _ => &NOTHING,
    }
}
