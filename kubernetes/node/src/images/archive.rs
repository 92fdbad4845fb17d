//! Image archives, imported as by containerd.
//!
//! An archive with an OCI layout has the names of its images in annotations of its index, which are used
//! literally. An archive of `docker save` has them in `manifest.json`, where they are completed. So a short
//! name in an OCI layout is stored unchanged, and a kubelet, which looks up the complete name, does not find
//! it.
//!
//! *Assumed*: `tar` is installed; it refuses members that would be written outside of the target directory.
//! *Not done*: images for several platforms in one archive, and whiteouts (files that a layer removes).

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
};

use serde::{Deserialize, de::DeserializeOwned};

use super::{ImageEntrypoint, LocalImage, reference::NormalizedReference};

/// The reason why an archive cannot be imported.
#[derive(Debug, thiserror::Error)]
#[error("failed to import image archive {archive:?}: {why}")]
pub struct ArchiveError {
    archive: PathBuf,
    why: String,
}

/// An unpacked image of an archive.
#[derive(Debug)]
pub(super) struct ImportedImage {
    pub(super) name: String,
    pub(super) digest: String,
    program: ImageEntrypoint,
}

impl ImportedImage {
    pub(super) fn to_local(&self) -> LocalImage {
        let repository = self.name.rsplit_once(':').map_or(self.name.as_str(), |(repository, _)| repository);
        let id = format!("{repository}@{}", self.digest);
        LocalImage { name: self.name.clone(), id, entrypoint: self.program.clone(), is_pullable: false }
    }
}

#[derive(Deserialize)]
struct OciIndex {
    manifests: Vec<OciDescriptor>,
}

#[derive(Deserialize)]
struct OciDescriptor {
    digest: String,
    #[serde(default)]
    annotations: IndexAnnotations,
}

#[derive(Default, Deserialize)]
struct IndexAnnotations {
    #[serde(rename = "io.containerd.image.name")]
    image_name: Option<String>,
    #[serde(rename = "org.opencontainers.image.ref.name")]
    ref_name: Option<String>,
}

#[derive(Deserialize)]
struct OciManifest {
    config: OciDescriptor,
    layers: Vec<OciDescriptor>,
}

/// An entry of `manifest.json`, the index of `docker save`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerManifest {
    config: String,
    #[serde(default)]
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

#[derive(Deserialize)]
struct ImageConfig {
    config: RunConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RunConfig {
    #[serde(default)]
    entrypoint: Option<Vec<String>>,
    #[serde(default)]
    cmd: Option<Vec<String>>,
}

/// Unpacks the images of an archive into directories of their own below `folder`.
pub(super) fn import(archive: &Path, folder: &Path) -> Result<Vec<ImportedImage>, ArchiveError> {
    let failed = |why: String| ArchiveError { archive: archive.to_owned(), why };
    let make = |folder: &Path| {
        fs::create_dir_all(folder)?;
        tempfile::Builder::new().prefix("image-").tempdir_in(folder).map(tempfile::TempDir::keep)
    };
    let place = make(folder).map_err(|error| failed(error.to_string()))?;
    let layout = ImageLayout { blobs: place.join("layout"), root: place.join("root") };
    layout.import(archive).map_err(failed)
}

/// An archive while it is unpacked.
struct ImageLayout {
    blobs: PathBuf,
    root: PathBuf,
}

impl ImageLayout {
    fn import(&self, archive: &Path) -> Result<Vec<ImportedImage>, String> {
        extract(archive, &self.blobs)?;
        let images = if self.blobs.join("oci-layout").exists() { self.import_oci() } else { self.import_docker() };
        // The layers have been extracted to the root file systems.
        let _ = fs::remove_dir_all(&self.blobs);
        images
    }

    fn import_oci(&self) -> Result<Vec<ImportedImage>, String> {
        let index: OciIndex = self.read_json("index.json")?;
        let mut images = Vec::new();
        for entry in index.manifests {
            let name = entry.annotations.image_name.or(entry.annotations.ref_name);
            let name = name.ok_or("an image has no name: index.json has no annotation io.containerd.image.name")?;
            let manifest: OciManifest = self.read_json(&blob_path(&entry.digest)?)?;
            let layers = manifest.layers.iter().map(|layer| blob_path(&layer.digest)).collect::<Result<Vec<_>, _>>()?;
            let program = self.unpack(&entry.digest, &blob_path(&manifest.config.digest)?, &layers)?;
            images.push(ImportedImage { name, digest: entry.digest, program });
        }
        Ok(images)
    }

    fn import_docker(&self) -> Result<Vec<ImportedImage>, String> {
        let manifests: Vec<DockerManifest> = self.read_json("manifest.json")?;
        let mut images = Vec::new();
        for manifest in manifests {
            let digest = manifest.config.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
            let digest = format!("sha256:{digest}");
            let program = self.unpack(&digest, &manifest.config, &manifest.layers)?;
            for tag in &manifest.repo_tags {
                let name = NormalizedReference::parse(tag).map_err(|error| format!("{tag:?}: {error}"))?.to_string();
                images.push(ImportedImage { name, digest: digest.clone(), program: program.clone() });
            }
        }
        Ok(images)
    }

    fn read_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let text =
            fs::read(self.blobs.join(checked_relative_path(path)?)).map_err(|error| format!("{path}: {error}"))?;
        serde_json::from_slice(&text).map_err(|error| format!("{path}: {error}"))
    }

    /// Extracts the root file system of an image and returns its entry point.
    fn unpack(&self, digest: &str, config: &str, layers: &[String]) -> Result<ImageEntrypoint, String> {
        let config: ImageConfig = self.read_json(config)?;
        let root = self.root.join(digest.trim_start_matches("sha256:"));
        for layer in layers {
            extract(&self.blobs.join(checked_relative_path(layer)?), &root)?;
        }
        let RunConfig { entrypoint, cmd } = config.config;
        let mut words = entrypoint.into_iter().flatten().chain(cmd.into_iter().flatten());
        let program = words.next().ok_or("an image has neither an entry point nor a command")?;
        let program = root.join(checked_relative_path(program.trim_start_matches('/'))?);
        Ok(words.fold(ImageEntrypoint::new(program), ImageEntrypoint::arg))
    }
}

/// The path of the blob with this digest.
fn blob_path(digest: &str) -> Result<String, String> {
    let digits = digest.strip_prefix("sha256:").filter(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()));
    digits.map(|digits| format!("blobs/sha256/{digits}")).ok_or_else(|| format!("{digest:?} is not a SHA-256 digest"))
}

/// Checks that a path does not leave the directory to which it is joined.
fn checked_relative_path(path: &str) -> Result<&Path, String> {
    let path = Path::new(path);
    let stays = path.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    if stays { Ok(path) } else { Err(format!("{path:?} points outside of the archive")) }
}

/// `tar` detects the compression of a layer itself.
fn extract(archive: &Path, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--no-same-owner", "--delay-directory-restore", "--file"]).arg(archive);
    tar.arg("--directory").arg(folder).stdin(Stdio::null());
    let output = tar.output().map_err(|error: io::Error| format!("failed to run tar: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "))
    }
}

#[cfg(test)]
mod tests;
