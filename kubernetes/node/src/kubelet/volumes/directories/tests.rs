use super::*;

#[test]
fn a_path_of_the_host_is_what_it_is_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    let file = dir.path().join("file");
    let none = dir.path().join("none");
    let check_host_path = |path: &Path, kind: &str| check_host_path("/var/lib/given", path, kind);
    check_host_path(&folder, "DirectoryOrCreate").unwrap();
    check_host_path(&file, "FileOrCreate").unwrap();
    assert!(folder.is_dir() && file.is_file());
    for kind in ["", "Directory", "DirectoryOrCreate"] {
        check_host_path(&folder, kind).unwrap();
    }
    check_host_path(&file, "File").unwrap();
    check_host_path(&none, "").unwrap();
    check_host_path(Path::new("/dev/null"), "CharDevice").unwrap();
    for (path, kind, what) in
        [(&file, "Directory", "directory"), (&none, "File", "file"), (&folder, "Socket", "socket file")]
    {
        let error = check_host_path(path, kind).unwrap_err().to_string();
        assert_eq!(error, format!("hostPath type check failed: /var/lib/given is not a {what}"));
    }
    assert!(check_host_path(&file, "Disk").is_err());
}

#[test]
fn an_empty_dir_that_holds_too_much_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let limit = SizeLimit::new("cache", dir.path(), "64Ki").unwrap();
    assert_eq!(limit.exceeded_message(), None);
    fs::create_dir(dir.path().join("deep")).unwrap();
    fs::write(dir.path().join("deep/file"), vec![b'x'; 128 << 10]).unwrap();
    assert_eq!(limit.exceeded_message().unwrap(), "Usage of EmptyDir volume \"cache\" exceeds the limit \"64Ki\". ");
    assert!(SizeLimit::new("cache", dir.path(), "0").is_none());
}
