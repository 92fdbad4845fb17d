use super::*;

fn payload(files: &[(&str, &str)]) -> Payload {
    let file = |text: &str| FileProjection { mode: 0o640, content: text.as_bytes().to_vec() };
    files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect()
}

/// All visible files, without the internal ones.
fn seen(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with("..")).collect();
    names.sort();
    names
}

fn versions(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("..2")).count()
}

#[test]
fn files_appear_with_their_modes_behind_links() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert!(write_payload(dir, &payload(&[("a", "1"), ("b/c", "2")])).unwrap());
    assert_eq!(seen(dir), ["a", "b"]);
    assert_eq!(fs::read_link(dir.join("a")).unwrap(), Path::new("..data/a"));
    assert_eq!(fs::read_to_string(dir.join("b/c")).unwrap(), "2");
    assert_eq!(fs::metadata(dir.join("a")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn what_is_the_same_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let files = payload(&[("a", "1"), ("b/c", "2")]);
    assert!(write_payload(dir.path(), &files).unwrap());
    let before = fs::read_link(dir.path().join(DATA_DIR_NAME)).unwrap();
    assert!(!write_payload(dir.path(), &files).unwrap());
    assert_eq!(fs::read_link(dir.path().join(DATA_DIR_NAME)).unwrap(), before);
    let mut other_mode = files;
    other_mode.values_mut().for_each(|file| file.mode = 0o600);
    assert!(write_payload(dir.path(), &other_mode).unwrap());
}

#[test]
fn a_new_version_replaces_the_old_one_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    write_payload(dir.path(), &payload(&[("a", "1"), ("b", "1"), ("c/d", "1")])).unwrap();
    assert!(write_payload(dir.path(), &payload(&[("a", "2"), ("e", "2")])).unwrap());
    assert_eq!(seen(dir.path()), ["a", "e"]);
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "2");
    assert_eq!(versions(dir.path()), 1);
    assert!(write_payload(dir.path(), &payload(&[])).unwrap());
    assert_eq!(seen(dir.path()), [""; 0]);
}

#[test]
fn a_write_that_was_cut_short_is_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    write_payload(dir.path(), &payload(&[("a", "1")])).unwrap();
    fs::create_dir(dir.path().join("..2020_01_01_00_00_00.00000000")).unwrap();
    symlink("..2020_01_01_00_00_00.00000000", dir.path().join(NEW_DATA_DIR_NAME)).unwrap();
    assert!(write_payload(dir.path(), &payload(&[("a", "2")])).unwrap());
    assert_eq!((versions(dir.path()), dir.path().join(NEW_DATA_DIR_NAME).is_symlink()), (1, false));
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "2");
}

#[test]
fn what_a_container_put_in_the_place_of_a_file_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let files = payload(&[("a", "1")]);
    write_payload(dir.path(), &files).unwrap();
    for other in ["/dev/zero", "/etc/hostname"] {
        let real = dir.path().join("a").canonicalize().unwrap();
        fs::remove_file(&real).unwrap();
        symlink(other, &real).unwrap();
        assert!(write_payload(dir.path(), &files).unwrap());
        assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "1");
    }
}

#[test]
fn what_was_mounted_within_stays() {
    let dir = tempfile::tempdir().unwrap();
    write_payload(dir.path(), &payload(&[("a", "1")])).unwrap();
    symlink("/nowhere", dir.path().join("nested")).unwrap();
    write_payload(dir.path(), &payload(&[("b", "2")])).unwrap();
    assert_eq!(seen(dir.path()), ["b", "nested"]);
}

#[test]
fn no_path_leaves_the_volume() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["", "/etc/passwd", "../up", "a/../../up", "..data", "..", "."] {
        let volume = dir.path().join("volume");
        let error = write_payload(&volume, &payload(&[(path, "x")])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
    }
    assert!(!dir.path().join("up").exists());
}
