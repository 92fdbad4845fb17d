//! Checks that the definitions in `deploy/crds` are those of the types. `cargo xtask crds` writes them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{fs, path::PathBuf};

use kubewake_api::crds;

#[test]
fn the_definitions_in_the_tree_are_those_of_the_types() {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds"));
    for crd in crds() {
        let path = directory.join(format!("{}.yaml", crd.spec.names.plural));
        let made = format!("# Made from crates/api by `cargo xtask crds`.\n{}", serde_saphyr::to_string(&crd).unwrap());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == made, "{} is old: run `cargo xtask crds`", path.display());
    }
}
