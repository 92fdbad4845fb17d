//! `kubewake collector prepare-state`: gives the directory in which a collector records its positions to the user of
//! the collector.
//!
//! It runs as an init container with the capabilities CHOWN and FOWNER, because a directory that a kubelet creates
//! belongs to root. *Guaranteed*: only the directory itself is changed, and never what a symbolic link leads to. A
//! directory that is as it should be is not touched, so that a node whose user is not root needs no capability.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use kubewake_config::ConfigSources as _;

use super::file_root::FileRoot;

/// Only the owner reads the positions: a hash of the first line of a log is among them.
const STATE_MODE: u32 = 0o700;
/// The bits of a mode that are permissions.
const PERMISSION_BITS: u32 = 0o7777;

/// Arguments of `kubewake collector prepare-state`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake collector prepare-state --directory /var/lib/kubewake/agent --owner 10001")]
pub(super) struct StateArgs {
    /// Directory to prepare; it has to exist
    #[arg(long, value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Numeric id of the user who gets the directory
    #[arg(long, value_name = "UID", value_parser = clap::value_parser!(u32).range(1..))]
    owner: u32,
}

/// Prepares the directory.
///
/// # Errors
/// If it is no directory, or the process lacks a capability.
pub(super) fn prepare(args: &StateArgs, root: &FileRoot) -> anyhow::Result<()> {
    let directory = mounted_directory(&args.directory, root.locate(&args.directory))?;
    prepare_directory(&directory, args.owner)
}

/// The directory itself. On a node of the embedded cluster, its place under the root is a link to the volume.
fn mounted_directory(given: &Path, located: PathBuf) -> anyhow::Result<PathBuf> {
    if located == given {
        return Ok(located);
    }
    located.canonicalize().with_context(|| format!("failed to read {}", located.display()))
}

fn prepare_directory(directory: &Path, owner: u32) -> anyhow::Result<()> {
    let shown = directory.display();
    let found = fs::symlink_metadata(directory).with_context(|| format!("failed to read {shown}"))?;
    if !found.is_dir() {
        bail!("failed to prepare {shown}: it is not a directory");
    }
    if found.uid() != owner {
        match lchown(directory, Some(owner), None) {
            // The process runs as the collector's user already, as on a node without root.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && owns_its_files(found.uid()) => {}
            changed => changed.with_context(|| {
                format!("failed to give {shown} to the user {owner}: the container needs the capability CHOWN")
            })?,
        }
    }
    if found.mode() & PERMISSION_BITS != STATE_MODE {
        let mode = fs::Permissions::from_mode(STATE_MODE);
        fs::set_permissions(directory, mode)
            .with_context(|| format!("failed to set the mode of {shown}: the container needs the capability FOWNER"))?;
    }
    Ok(())
}

/// Whether this process runs as the user with this id, and that is not root.
fn owns_its_files(uid: u32) -> bool {
    let own = fs::metadata("/proc/self").map(|process| process.uid());
    uid != 0 && own.is_ok_and(|own| own == uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_under_a_root_is_followed_and_a_link_elsewhere_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("volume")).unwrap();
        std::os::unix::fs::symlink(path("volume"), path("mount")).unwrap();
        let volume = path("volume").canonicalize().unwrap();
        assert_eq!(mounted_directory(Path::new("/var/lib/agent"), path("mount")).unwrap(), volume);
        assert_eq!(mounted_directory(&path("mount"), path("mount")).unwrap(), path("mount"));
        assert!(prepare_directory(&path("mount"), 10001).unwrap_err().to_string().contains("not a directory"));
        assert!(mounted_directory(Path::new("/var/lib/agent"), path("none")).is_err());
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & PERMISSION_BITS
    }

    #[test]
    fn directory_becomes_private_to_its_owner_and_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
        let owner = fs::metadata(&state).unwrap().uid();
        for _ in 0..2 {
            prepare_directory(&state, owner).unwrap();
            assert_eq!(mode(&state), STATE_MODE);
        }
    }

    #[test]
    fn link_and_file_are_refused_and_nothing_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::create_dir(&target).unwrap();
        let before = mode(&target);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [&link, &file] {
            let error = prepare_directory(path, 10001).unwrap_err().to_string();
            assert!(error.contains("is not a directory"), "{error}");
        }
        assert_eq!(mode(&target), before);
        assert!(prepare_directory(&folder.path().join("missing"), 10001).is_err());
    }
}
