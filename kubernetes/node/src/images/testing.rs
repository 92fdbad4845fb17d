//! Archives for tests.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// An archive with an image of this name, as `cargo xtask image` writes it.
pub(crate) fn archive(place: &TempDir, name: &str) -> PathBuf {
    archive_with(place, Some(json!({"io.containerd.image.name": name})), &[name])
}

/// Some digests; they are not verified.
const DIGESTS: [&str; 3] = ["11", "22", "33"];

pub(crate) fn digest(which: usize) -> String {
    format!("sha256:{}", DIGESTS[which].repeat(32))
}

/// An archive whose only file is an executable `/app`, with these annotations or these names of `docker save`.
pub(crate) fn archive_with(place: &TempDir, annotations: Option<Value>, repo_tags: &[&str]) -> PathBuf {
    let layout = place.path().join("made");
    let root = place.path().join("files");
    let blobs = layout.join("blobs/sha256");
    for folder in [&root, &blobs] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(root.join("app"), "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(root.join("app"), fs::Permissions::from_mode(0o555)).unwrap();
    let blob = |which: usize| blobs.join(DIGESTS[which].repeat(32));
    pack(&root, &blob(0));
    fs::write(blob(1), json!({"config": {"Entrypoint": ["/app", "serve"], "Cmd": ["--fast"]}}).to_string()).unwrap();
    let manifest = json!({"config": {"digest": digest(1)}, "layers": [{"digest": digest(0)}]});
    fs::write(blob(2), manifest.to_string()).unwrap();
    if let Some(annotations) = annotations {
        let index = json!({"manifests": [{"digest": digest(2), "annotations": annotations}]});
        fs::write(layout.join("index.json"), index.to_string()).unwrap();
        fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    }
    let inside = |which: usize| format!("blobs/sha256/{}", DIGESTS[which].repeat(32));
    let docker = json!([{"Config": inside(1), "RepoTags": repo_tags, "Layers": [inside(0)]}]);
    fs::write(layout.join("manifest.json"), docker.to_string()).unwrap();
    let archive = place.path().join("image.tar");
    pack(&layout, &archive);
    archive
}

fn pack(folder: &Path, archive: &Path) {
    let status = Command::new("tar").arg("-cf").arg(archive).arg("-C").arg(folder).arg(".").status();
    assert!(status.unwrap().success());
}
