use std::{fs, os::unix::fs::symlink};

use super::*;

#[test]
fn without_a_root_a_path_is_what_it_says() {
    assert_eq!(mounted(Path::new("/etc/hosts")), Path::new("/etc/hosts"));
}

#[test]
fn the_root_comes_first_and_the_machine_shows_through() {
    let dir = tempfile::tempdir().unwrap();
    let (root, volume) = (dir.path().join("root"), dir.path().join("volume"));
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::create_dir_all(root.join("tmp")).unwrap();
    fs::create_dir_all(&volume).unwrap();
    fs::write(volume.join("config.yaml"), "").unwrap();
    fs::write(root.join("etc/passwd"), "").unwrap();
    symlink(&volume, root.join("etc/app")).unwrap();
    let inside = |path: &str| under(&root, Path::new(path)) == root.join(path.trim_start_matches('/'));
    let unchanged = |path: &Path| under(&root, path) == path;
    assert!(inside("/etc/app/config.yaml"));
    // Both have it.
    assert!(inside("/etc/passwd"));
    // Only the machine has it.
    assert!(unchanged(Path::new("/dev/null")));
    assert!(unchanged(Path::new("/proc/self/status")));
    // Nobody has it.
    assert!(inside("/etc/app/new/deep/file.json"));
    assert!(inside("/tmp/no-such-file-of-ours.json"));
    assert!(unchanged(Path::new("/var/lib/no-such-folder-of-ours/file.json")));
    // Not for us to say.
    assert!(unchanged(Path::new("relative.yaml")));
    assert!(unchanged(&root.join("etc/app/config.yaml")));
    assert!(unchanged(&root.join("etc/app/not-there.yaml")));
}
