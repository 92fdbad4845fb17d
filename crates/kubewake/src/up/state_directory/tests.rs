use super::*;

fn ports() -> ListenAddresses {
    let at = |port| ([127, 0, 0, 1], port).into();
    ListenAddresses { page: at(1), api: at(2), otlp: at(3), otlp_http: at(4) }
}

#[test]
fn a_data_directory_belongs_to_one_who_is_named_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/data");
    let held = StateDirectory::acquire(Some(&path)).unwrap();
    let refused = StateDirectory::acquire(Some(&path)).unwrap_err().to_string();
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
    drop(held);
    assert!(StateDirectory::acquire(Some(&path)).is_ok());
}

#[test]
fn ports_are_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StateDirectory::acquire(Some(dir.path())).unwrap();
    assert_eq!(folder.load_ports().unwrap(), None);
    folder.save_ports(&ports()).unwrap();
    drop(folder);
    assert_eq!(StateDirectory::acquire(Some(dir.path())).unwrap().load_ports().unwrap(), Some(ports()));
}

#[test]
fn a_file_of_a_later_version_or_of_nobody_is_not_guessed_at() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StateDirectory::acquire(Some(dir.path())).unwrap();
    folder.save_ports(&ports()).unwrap();
    let path = dir.path().join("ports.json");
    let text = fs::read_to_string(&path).unwrap();
    for (bad, said) in [(text.replace("\"version\":1", "\"version\":2"), "version 2"), ("{".into(), "delete the file")]
    {
        fs::write(&path, bad).unwrap();
        let error = folder.load_ports().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
