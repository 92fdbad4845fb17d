//! Labels of what is made.

use std::collections::BTreeMap;

/// Names the Head of a ChildA.
pub const HEAD: &str = "demo.kubewake.io/head";
/// Names the ChildA of a Deployment and of its pods.
pub const CHILD: &str = "demo.kubewake.io/childa";
/// Who makes all of it; also the name under which fields are owned.
pub const MANAGER: &str = "head-operator";

/// All labels of something that is made for `name`.
pub fn of(key: &str, name: &str) -> BTreeMap<String, String> {
    let managed = ("app.kubernetes.io/managed-by".to_owned(), MANAGER.to_owned());
    selected(key, name).into_iter().chain([managed]).collect()
}

/// Those by which it is selected, which never change.
pub fn selected(key: &str, name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), name.to_owned())])
}
