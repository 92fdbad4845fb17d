use std::{fs, os::unix::fs::symlink};

use super::*;

#[test]
fn path_is_unchanged_without_a_root() {
    assert_eq!(FileRoot { root: None }.locate(Path::new("/etc/hosts")), Path::new("/etc/hosts"));
}

#[test]
fn root_comes_before_the_machine_and_holds_new_files_of_volumes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    let volume = dir.path().join("volume");
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::create_dir_all(root.join("tmp")).unwrap();
    fs::create_dir_all(&volume).unwrap();
    fs::write(volume.join("config.yaml"), "").unwrap();
    fs::write(root.join("etc/passwd"), "").unwrap();
    symlink(&volume, root.join("etc/app")).unwrap();
    let inside = |path: &str| path_under_root(&root, Path::new(path)) == root.join(path.trim_start_matches('/'));
    let unchanged = |path: &Path| path_under_root(&root, path) == path;
    assert!(inside("/etc/app/config.yaml"));
    // Exists in both.
    assert!(inside("/etc/passwd"));
    // Exists only on the machine.
    assert!(unchanged(Path::new("/dev/null")));
    assert!(unchanged(Path::new("/proc/self/status")));
    // Exists in neither.
    assert!(inside("/etc/app/new/deep/file.json"));
    assert!(inside("/tmp/no-such-file-of-ours.json"));
    assert!(unchanged(Path::new("/var/lib/no-such-folder-of-ours/file.json")));
    // Never mapped.
    assert!(unchanged(Path::new("relative.yaml")));
    assert!(unchanged(&root.join("etc/app/config.yaml")));
    assert!(unchanged(&root.join("etc/app/not-there.yaml")));
}
