//! Which fields a request cannot change, whatever it sends, and so does not come to own.

use std::sync::LazyLock;

use super::fieldset::Set;

static NOTHING: LazyLock<Set> = LazyLock::new(Set::default);
static STATUS: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["status"]]));
static SPEC: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["spec"]]));
static SPEC_AND_LABELS: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["spec"], &["metadata", "labels"]]));
static SPEC_AND_META: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["spec"], &["metadata"]]));
static POD_STATUS: LazyLock<Set> =
    LazyLock::new(|| Set::of(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]));

/// The fields that a path of a resource resets. `has_status`: the resource has a subresource `status`.
pub fn reset_fields(group: &str, kind: &str, subresource: &str, has_status: bool) -> &'static Set {
    match (subresource, group, kind) {
        ("", ..) if has_status => &STATUS,
        ("finalize", "", "Namespace") => &STATUS,
        ("status", "apps", "Deployment") => &SPEC_AND_LABELS,
        ("status", "", "Pod") => &POD_STATUS,
        ("status", "apiextensions.k8s.io", "CustomResourceDefinition") => &SPEC_AND_META,
        ("status", ..) => &SPEC,
        _ => &NOTHING,
    }
}
