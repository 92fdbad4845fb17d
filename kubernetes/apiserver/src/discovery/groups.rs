//! The order of groups and versions.

use std::cmp::{Ordering, Reverse};

use crate::{api::GroupVersion, registry::Catalog};

/// The built-in groups in kube-apiserver's order. Other groups follow, by name.
const BUILTIN_GROUP_ORDER: [&str; 20] = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
];

/// A group and its versions, the preferred one first.
#[derive(Debug)]
pub(crate) struct ServedGroup<'c> {
    pub(crate) name: &'c str,
    /// Its versions. There is at least one.
    pub(crate) versions: Vec<&'c GroupVersion>,
}

/// The served groups, except the core one.
pub(crate) fn groups(catalog: &Catalog) -> Vec<ServedGroup<'_>> {
    let mut groups: Vec<ServedGroup<'_>> = Vec::new();
    for resource in catalog.all().filter(|resource| !resource.gv.group.is_empty()) {
        match groups.last_mut().filter(|last| last.name == &*resource.gv.group) {
            Some(last) if last.versions.last() == Some(&&resource.gv) => {}
            Some(last) => last.versions.push(&resource.gv),
            None => groups.push(ServedGroup { name: &resource.gv.group, versions: vec![&resource.gv] }),
        }
    }
    for group in &mut groups {
        group.versions.sort_by(|a, b| compare_versions(&a.version, &b.version));
    }
    groups.sort_by_key(|group| (priority(group.name), group.name));
    groups
}

pub(super) fn find<'c>(catalog: &'c Catalog, name: &str) -> Option<ServedGroup<'c>> {
    groups(catalog).into_iter().find(|group| group.name == name)
}

fn priority(name: &str) -> usize {
    BUILTIN_GROUP_ORDER.iter().position(|known| *known == name).unwrap_or(BUILTIN_GROUP_ORDER.len())
}

/// Sorts versions by preference: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then other names alphabetically.
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// The rank of a version with a Kubernetes name: stability, number, number of the beta or alpha.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    for (stability, word) in [(1, "beta"), (0, "alpha")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stability, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

/// A number without a sign or leading zeros, at least 1.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    plain.then(|| text.parse().ok())?
}
