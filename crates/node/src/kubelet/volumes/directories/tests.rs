use super::*;

#[test]
fn a_path_of_the_host_is_what_it_is_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, file, none) = (dir.path().join("folder"), dir.path().join("file"), dir.path().join("none"));
    assert_eq!(host(&folder, "DirectoryOrCreate").unwrap(), folder);
    assert_eq!(host(&file, "FileOrCreate").unwrap(), file);
    for kind in ["", "Directory", "DirectoryOrCreate"] {
        host(&folder, kind).unwrap();
    }
    host(&file, "File").unwrap();
    host(&none, "").unwrap();
    host(Path::new("/dev/null"), "CharDevice").unwrap();
    for (path, kind, what) in
        [(&file, "Directory", "directory"), (&none, "File", "file"), (&folder, "Socket", "socket file")]
    {
        let error = host(path, kind).unwrap_err().to_string();
        assert_eq!(error, format!("hostPath type check failed: {} is not a {what}", path.display()));
    }
    assert!(host(&file, "Disk").is_err());
}

#[test]
fn an_empty_dir_that_holds_too_much_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let limit = Limit::new("cache", dir.path(), "64Ki").unwrap();
    assert_eq!(limit.exceeded(), None);
    fs::create_dir(dir.path().join("deep")).unwrap();
    fs::write(dir.path().join("deep/file"), vec![b'x'; 128 << 10]).unwrap();
    assert_eq!(limit.exceeded().unwrap(), "Usage of EmptyDir volume \"cache\" exceeds the limit \"64Ki\". ");
    assert!(Limit::new("cache", dir.path(), "0").is_none());
}
