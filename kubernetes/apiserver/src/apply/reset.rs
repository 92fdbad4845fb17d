//! The fields that a request cannot change, and therefore does not own.

use std::sync::LazyLock;

use super::fieldset::FieldSet;
use crate::registry::ServedResource;

static NO_FIELDS: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
static STATUS_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::from_paths(&[&["status"]]));
static SPEC_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::from_paths(&[&["spec"]]));
static SPEC_AND_LABELS_FIELDS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::from_paths(&[&["spec"], &["metadata", "labels"]]));
static SPEC_AND_META_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::from_paths(&[&["spec"], &["metadata"]]));
static POD_STATUS_RESET_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::from_paths(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
});

/// The reset fields of a resource's path. `subresource` is empty for the main path.
pub fn reset_fields(resource: &ServedResource, subresource: &str) -> &'static FieldSet {
    let kind = (&*resource.gv.group, &*resource.kind);
    reset_fields_of_kind(kind, subresource, resource.has_status(), resource.custom.is_some())
}

pub(super) fn reset_fields_of_kind(
    kind: (&str, &str),
    subresource: &str,
    has_status: bool,
    custom: bool,
) -> &'static FieldSet {
    match (subresource, kind) {
        ("", _) if has_status => &STATUS_FIELDS,
        ("finalize", ("", "Namespace")) => &STATUS_FIELDS,
        ("status", _) if custom => &SPEC_AND_META_FIELDS,
        ("status", ("apps", "Deployment")) => &SPEC_AND_LABELS_FIELDS,
        ("status", ("", "Pod")) => &POD_STATUS_RESET_FIELDS,
        ("status", ("apiextensions.k8s.io", "CustomResourceDefinition")) => &SPEC_AND_META_FIELDS,
        ("status", _) => &SPEC_FIELDS,
        _ => &NO_FIELDS,
    }
}
