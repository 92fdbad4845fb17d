use std::time::Duration;

use super::*;

fn notice(name: &str) -> InstanceRecord {
    let at = |port| ([127, 0, 0, 1], port).into();
    let ports = ListenAddresses { page: at(1), api: at(2), otlp: at(3), otlp_http: at(4) };
    InstanceRecord::new(&ports, Path::new(name))
}

/// A record that was started this number of seconds after the first.
fn post(folder: &Path, name: &str, after: u64) -> RecordFile {
    let path = folder.join(format!("{name}.json"));
    let file = notice(name).write(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(after)).unwrap();
    RecordFile { path, _file: file }
}

fn found(folder: &Path) -> Option<String> {
    newest_record(folder).map(|notice| notice.kubeconfig.display().to_string())
}

#[test]
fn when_the_last_one_ends_the_one_before_it_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("running");
    assert_eq!(found(&folder), None);
    let first = post(&folder, "first", 1);
    let second = post(&folder, "second", 3);
    let third = post(&folder, "third", 2);
    assert_eq!(found(&folder).as_deref(), Some("second"));
    drop(second);
    assert_eq!(found(&folder).as_deref(), Some("third"));
    drop(third);
    assert_eq!(found(&folder).as_deref(), Some("first"));
    drop(first);
    assert_eq!(found(&folder), None);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing stays");
}

#[test]
fn one_that_was_killed_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    let _first = post(dir.path(), "first", 1);
    let killed = post(dir.path(), "killed", 2);
    // Its process released the lock, and left the file.
    killed._file.unlock().unwrap();
    assert_eq!(found(dir.path()).as_deref(), Some("first"));
    assert!(killed.path.exists());
    let next = notice("next").publish_in(dir.path()).unwrap();
    assert!(!killed.path.exists(), "the next one removes it");
    drop(next);
    assert_eq!(found(dir.path()).as_deref(), Some("first"));
}
