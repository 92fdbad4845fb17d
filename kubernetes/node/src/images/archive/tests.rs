use serde_json::json;

use super::*;
use crate::images::{
    ImageStore,
    testing::{archive_with as archive, digest},
};

fn named(text: &str) -> NormalizedReference {
    NormalizedReference::parse(text).unwrap()
}

#[test]
fn complete_name_is_found_by_every_way_to_write_it_and_can_not_be_pulled() {
    let place = tempfile::tempdir().unwrap();
    let annotations =
        json!({"io.containerd.image.name": "docker.io/team/app:1", "org.opencontainers.image.ref.name": "1"});
    let archive = archive(&place, Some(annotations), &["docker.io/team/app:1"]);
    let mut images = ImageStore::default();
    let names = images.import(&archive, &place.path().join("images")).unwrap();
    assert_eq!(names, ["docker.io/team/app:1"]);
    for text in ["team/app:1", "docker.io/team/app:1", &format!("team/app@{}", digest(2))] {
        let image = images.find_present(&named(text)).unwrap();
        assert_eq!(image.entrypoint.args, ["serve", "--fast"], "{text}");
        assert_eq!(fs::read_to_string(&image.entrypoint.path).unwrap(), "#!/bin/sh\nexec sleep 1000\n");
        assert_eq!(image.id, format!("docker.io/team/app@{}", digest(2)));
        assert!(images.pull(&named(text)).unwrap_err().to_string().contains(": not found"), "{text}");
    }
    for text in ["team/app", "team/app:2", "app:1", "registry.example/team/app:1"] {
        assert!(images.find_present(&named(text)).is_none(), "{text}");
    }
}

#[test]
fn short_name_in_an_oci_layout_is_never_found() {
    let place = tempfile::tempdir().unwrap();
    let archive = archive(&place, Some(json!({"io.containerd.image.name": "team/app:1"})), &["team/app:1"]);
    let mut images = ImageStore::default();
    assert_eq!(images.import(&archive, &place.path().join("images")).unwrap(), ["team/app:1"]);
    for text in ["team/app:1", "docker.io/team/app:1"] {
        assert!(images.find_present(&named(text)).is_none(), "{text}");
    }
}

#[test]
fn short_name_of_docker_save_is_completed() {
    let place = tempfile::tempdir().unwrap();
    let archive = archive(&place, None, &["team/app:1", "app"]);
    let mut images = ImageStore::default();
    let names = images.import(&archive, &place.path().join("images")).unwrap();
    assert_eq!(names, ["docker.io/team/app:1", "docker.io/library/app:latest"]);
    assert!(images.find_present(&named("team/app:1")).is_some());
}

#[test]
fn malformed_archives_say_what_is_wrong() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("images");
    let mut images = ImageStore::default();
    let none = place.path().join("none.tar");
    let said = images.import(&none, &folder).unwrap_err().to_string();
    assert!(said.contains("none.tar") && said.contains("No such file"), "{said}");
    let unnamed = archive(&place, Some(json!({})), &[]);
    let said = images.import(&unnamed, &folder).unwrap_err().to_string();
    assert!(said.contains("io.containerd.image.name"), "{said}");
    for (path, is_inner) in [("blobs/a", true), ("./a", true), ("../a", false), ("a/../../b", false), ("/a", false)] {
        assert_eq!(checked_relative_path(path).is_ok(), is_inner, "{path}");
    }
    assert!(blob_path("sha256:../../etc/passwd").is_err());
}
