//! The root file system of an image.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde_json::Value;

use super::{path_text, sbom};

/// A user that owns no file. The number is the conventional one for this, and the one in the manifests.
pub(super) const USER: &str = "65532:65532";
/// Trusted authorities: the bundle of Debian's `ca-certificates`, at the path where programs look for it.
pub(super) const CA_BUNDLE_PATH: &str = "etc/ssl/certs/ca-certificates.crt";
const PASSWD: &str = "kubewake:x:65532:65532::/:/\n";
const GROUP: &str = "kubewake:x:65532:\n";

pub(super) fn write(root: &Path, program: &Path, materials: &Value) -> anyhow::Result<()> {
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("failed to empty {}", root.display()));
        }
        _ => {}
    }
    let there = || format!("failed to write {}", root.display());
    for file in [CA_BUNDLE_PATH, sbom::SBOM_PATH] {
        let folder = root.join(file).parent().map(Path::to_owned).unwrap_or_default();
        fs::create_dir_all(folder).with_context(there)?;
    }
    let authorities = Path::new("/").join(CA_BUNDLE_PATH);
    fs::copy(&authorities, root.join(CA_BUNDLE_PATH))
        .with_context(|| format!("{} does not exist: install ca-certificates", authorities.display()))?;
    fs::write(root.join("etc/passwd"), PASSWD).with_context(there)?;
    fs::write(root.join("etc/group"), GROUP).with_context(there)?;
    fs::write(root.join(sbom::SBOM_PATH), serde_json::to_vec(materials)?).with_context(there)?;
    let name = program.file_name().and_then(|name| name.to_str()).context("the program has no name")?;
    fs::copy(program, root.join(name)).with_context(there)?;
    for (file, mode) in
        [(CA_BUNDLE_PATH, 0o444), (sbom::SBOM_PATH, 0o444), ("etc/passwd", 0o444), ("etc/group", 0o444), (name, 0o555)]
    {
        fs::set_permissions(root.join(file), fs::Permissions::from_mode(mode)).with_context(there)?;
    }
    Ok(())
}

/// All files in order, with their paths in the image.
pub(super) fn list(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    let mut names = files.iter().map(|file| Ok(format!("/{}", path_text(file.strip_prefix(root)?)?)));
    let mut names = names.by_ref().collect::<anyhow::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("failed to list {}", directory.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() { collect(&entry.path(), files)? } else { files.push(entry.path()) }
    }
    Ok(())
}
