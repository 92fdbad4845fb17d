//! Packs an image into one file: the image layout of the Open Container Initiative, with the index that
//! `docker load` reads beside it.

use std::{fs, path::Path, process::Command};

use anyhow::Context;
use serde_json::{Value, json};

use super::path_text;
use crate::steps::{command_output, run as run_command};

/// The configuration of an image.
pub(super) struct ImageDescription<'a> {
    /// The complete name, with registry and tag.
    pub(super) tag: &'a str,
    /// The program, and the arguments that precede those of a container.
    pub(super) entry_point: &'a [String],
    pub(super) user: &'a str,
}

/// A blob, identified by its digest.
struct OciBlob {
    digest: String,
    size: u64,
}

/// Packs the files below `root` into an archive.
pub(super) fn write(archive: &Path, root: &Path, about: &ImageDescription<'_>) -> anyhow::Result<()> {
    let layout = root.with_extension("oci");
    let blobs = layout.join("blobs/sha256");
    if layout.exists() {
        fs::remove_dir_all(&layout)?;
    }
    fs::create_dir_all(&blobs).with_context(|| format!("failed to write {}", blobs.display()))?;

    let layer = layout.join("layer");
    pack(root, ".", &layer)?;
    let layer = store_blob(&blobs, &layer)?;
    let config = write_json_blob(&layout, &blobs, &config(about, &layer.digest))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar")],
    });
    let mut manifest =
        write_json_blob(&layout, &blobs, &manifest)?.descriptor("application/vnd.oci.image.manifest.v1+json");
    if let Some(manifest) = manifest.as_object_mut() {
        // `ctr images import` and `kind load` store the first literally, and docker and podman prefer it. The
        // second is what `skopeo` selects by. `RepoTags` below is what docker reads where it has a store of its
        // own.
        let version = about.tag.rsplit_once(':').map_or("latest", |(_, version)| version);
        let names = json!({ "io.containerd.image.name": about.tag, "org.opencontainers.image.ref.name": version });
        manifest.insert("annotations".to_owned(), names);
    }

    let index =
        json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest] });
    let docker = json!([{ "Config": config.path(), "RepoTags": [about.tag], "Layers": [layer.path()] }]);
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    fs::write(layout.join("index.json"), index.to_string())?;
    fs::write(layout.join("manifest.json"), docker.to_string())?;
    pack(&layout, ".", archive)
}

fn config(about: &ImageDescription<'_>, layer: &str) -> Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "created": "1970-01-01T00:00:00Z",
        "architecture": architecture,
        "os": "linux",
        "config": { "User": about.user, "Entrypoint": about.entry_point, "WorkingDir": "/" },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
    })
}

impl OciBlob {
    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": format!("sha256:{}", self.digest), "size": self.size })
    }
}

fn write_json_blob(layout: &Path, blobs: &Path, value: &Value) -> anyhow::Result<OciBlob> {
    let file = layout.join("json");
    fs::write(&file, value.to_string())?;
    store_blob(blobs, &file)
}

pub(super) fn sha256(file: &Path) -> anyhow::Result<String> {
    let said = command_output("sha256sum", &[path_text(file)?])?;
    said.split_whitespace().next().map(str::to_owned).context("sha256sum says nothing")
}

/// Moves a file to the path of its digest.
fn store_blob(blobs: &Path, file: &Path) -> anyhow::Result<OciBlob> {
    let digest = sha256(file)?;
    let size = fs::metadata(file)?.len();
    fs::rename(file, blobs.join(&digest))?;
    Ok(OciBlob { digest, size })
}

/// Packs files as root, sorted and with a fixed time, so that the same files give the same bytes.
fn pack(directory: &Path, what: &str, archive: &Path) -> anyhow::Result<()> {
    let archive = std::path::absolute(archive)?;
    if let Some(parent) = archive.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"]);
    tar.arg("--file").arg(&archive).arg("--directory").arg(std::path::absolute(directory)?).arg(what);
    run_command(&mut tar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_named_is_there_and_is_what_its_name_says() {
        let place = tempfile::tempdir().unwrap();
        let (root, archive, out) =
            (place.path().join("root"), place.path().join("image.tar"), place.path().join("out"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&out).unwrap();
        fs::write(root.join("program"), "does nothing").unwrap();
        let entry_point = ["/kubewake".to_owned(), "serve".to_owned()];
        let about =
            ImageDescription { tag: "docker.io/example/program:1", entry_point: &entry_point, user: "65532:65532" };
        write(&archive, &root, &about).unwrap();
        let again = place.path().join("again.tar");
        write(&again, &root, &about).unwrap();
        assert_eq!(fs::read(&archive).unwrap(), fs::read(&again).unwrap(), "the same files are the same image");

        let unpacked =
            Command::new("tar").arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&out).status();
        assert!(unpacked.unwrap().success());
        let json = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
        let named = |blob: &Value| {
            let digest = blob["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
            let path = out.join("blobs/sha256").join(&digest);
            assert_eq!(fs::metadata(&path).unwrap().len(), blob["size"].as_u64().unwrap());
            assert!(command_output("sha256sum", &[path_text(&path).unwrap()]).unwrap().starts_with(&digest));
            path
        };
        let index = json(&out.join("index.json"));
        let annotations = &index["manifests"][0]["annotations"];
        assert_eq!(annotations["io.containerd.image.name"], "docker.io/example/program:1");
        assert_eq!(annotations["org.opencontainers.image.ref.name"], "1");
        let manifest = json(&named(&index["manifests"][0]));
        let config = json(&named(&manifest["config"]));
        let layer = named(&manifest["layers"][0]);
        assert_eq!(config["config"]["Entrypoint"], json!(["/kubewake", "serve"]));
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        assert_eq!(json(&out.join("manifest.json"))[0]["RepoTags"], json!(["docker.io/example/program:1"]));
        let listed = command_output("tar", &["--list", "--file", path_text(&layer).unwrap()]).unwrap();
        assert_eq!(listed.lines().collect::<Vec<_>>(), ["./", "./program"]);
    }
}
