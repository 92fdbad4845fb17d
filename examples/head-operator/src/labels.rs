//! Labels of children.

use std::collections::BTreeMap;

/// The label of a ChildA with the name of its Head.
pub const HEAD_LABEL: &str = "demo.kubewake.io/head";
/// The label of a Deployment and its pods with the name of their ChildA.
pub const CHILD_LABEL: &str = "demo.kubewake.io/childa";
/// The field manager, and the value of `app.kubernetes.io/managed-by`.
pub const FIELD_MANAGER: &str = "head-operator";

/// All labels of an object that is created for `name`.
pub fn object_labels(key: &str, name: &str) -> BTreeMap<String, String> {
    let managed = ("app.kubernetes.io/managed-by".to_owned(), FIELD_MANAGER.to_owned());
    selector_labels(key, name).into_iter().chain([managed]).collect()
}

/// The labels by which it is selected; they never change.
pub fn selector_labels(key: &str, name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), name.to_owned())])
}
