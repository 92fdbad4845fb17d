//! All that is applied to a cluster is what its version of Kubernetes knows, from the oldest supported one to
//! the newest.

use std::{fs, path::Path};

use kubewake_e2e::python;
use kubewake_release::{NEWEST_KUBERNETES_MINOR, OLDEST_KUBERNETES_MINOR};

use super::*;

/// Manifests, and what the operator makes of rich pipelines, which its own tests hold against these files.
const FOLDERS: [&str; 6] = [
    "deploy/base",
    "deploy/crds",
    "deploy/webhook",
    "examples/head-operator/deploy",
    "examples/scheduler/deploy",
    "crates/operator/tests/golden",
];

fn manifests() -> Vec<String> {
    let files = |folder: &str| fs::read_dir(workspace().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let is_yaml = |path: &Path| path.extension().is_some_and(|extension| extension == "yaml");
    FOLDERS
        .iter()
        .flat_map(|folder| files(folder))
        .filter(|path| is_yaml(path))
        .map(|path| path.display().to_string())
        .collect()
}

/// What is wrong with the objects, by the schemas of Kubernetes 1.`minor`.
fn problems(minor: u32) -> Vec<String> {
    let version = format!("1.{minor}");
    let manifests = manifests();
    let args: Vec<&str> = std::iter::once(version.as_str()).chain(manifests.iter().map(String::as_str)).collect();
    let report = python::run("validate_manifests.py", &args);
    assert!(report["objects"].as_u64().unwrap() > 70, "{report}");
    report["problems"].as_array().unwrap().iter().map(|problem| problem.as_str().unwrap().to_owned()).collect()
}

#[test]
fn manifests_and_rendered_objects_are_valid_on_the_oldest_and_the_newest_kubernetes() {
    for minor in [OLDEST_KUBERNETES_MINOR, NEWEST_KUBERNETES_MINOR] {
        assert_eq!(problems(minor), Vec::<String>::new(), "Kubernetes 1.{minor}");
    }
}

/// A field that a version does not know is found: it is why the oldest one is what it is.
#[test]
fn field_that_an_older_kubernetes_does_not_know_is_found() {
    let found = problems(28);
    assert!(
        found.iter().any(|problem| problem.contains("lifecycle.preStop") && problem.contains("'sleep'")),
        "{found:#?}"
    );
}

#[test]
fn documents_name_the_versions_that_are_validated() {
    let page = fs::read_to_string(workspace().join("docs/running-on-a-cluster.md")).unwrap();
    assert!(page.contains(&format!("Kubernetes 1.{OLDEST_KUBERNETES_MINOR} is the oldest supported version")));
    assert!(page.contains(&format!("schemas of 1.{OLDEST_KUBERNETES_MINOR} and of 1.{NEWEST_KUBERNETES_MINOR}")));
    let troubles = fs::read_to_string(workspace().join("docs/troubleshooting.md")).unwrap();
    assert!(troubles.contains(&format!("Kubernetes 1.{OLDEST_KUBERNETES_MINOR} or newer is needed")));
}
