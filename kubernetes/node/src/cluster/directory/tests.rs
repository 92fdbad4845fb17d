use super::*;

fn directory(data: &Path) -> ClusterDirectory {
    ClusterDirectory { run: data.join("run"), data: Some(data.to_owned()) }
}

#[test]
fn addresses_come_back() {
    let data = tempfile::tempdir().unwrap();
    let first = directory(data.path()).acquire_block().unwrap().number();
    assert_eq!(directory(data.path()).acquire_block().unwrap().number(), first);
}

#[test]
fn addresses_that_somebody_else_has_are_not_taken() {
    let data = tempfile::tempdir().unwrap();
    let held = directory(data.path()).acquire_block().unwrap();
    let refused = directory(data.path()).acquire_block().unwrap_err();
    assert!(
        matches!(&refused, ClusterStartError::AddressBlockTaken { block, .. } if *block == held.number()),
        "{refused:?}"
    );
}

#[test]
fn another_format_is_not_read() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("addresses.json"), r#"{"version":2,"block":20}"#).unwrap();
    let refused = directory(data.path()).acquire_block().unwrap_err();
    assert!(matches!(refused, ClusterStartError::File { .. }), "{refused:?}");
}

#[test]
fn without_data_everything_goes_with_the_run() {
    let directory = ClusterDirectory::open(None).unwrap();
    assert!(directory.claims().starts_with(directory.run()));
    fs::remove_dir_all(directory.run()).unwrap();
}

#[test]
fn a_directory_that_is_said_from_here_is_known_from_everywhere() {
    let directory = ClusterDirectory::open(Some(Path::new("./data"))).unwrap();
    assert!(directory.claims().is_absolute() && directory.run().is_absolute());
    assert_eq!(fs::metadata(directory.run()).unwrap().permissions().mode() & 0o777, 0o700);
    fs::remove_dir_all(directory.run()).unwrap();
}

#[test]
fn a_file_is_no_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = ClusterDirectory::open(Some(file.path())).unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.starts_with("the data directory \"/") && why.contains("is not a directory"), "{why}");
}

#[test]
fn below_a_file_is_no_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = ClusterDirectory::open(Some(&file.path().join("sub/data"))).unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(
        why.starts_with("failed to create data directory")
            && why.ends_with(&format!(": {:?} is not a directory", file.path())),
        "{why}"
    );
}

#[tokio::test]
async fn a_directory_that_somebody_uses_is_said_to_be_in_use() {
    let data = tempfile::tempdir().unwrap();
    let _held = directory(data.path()).acquire_block().unwrap();
    let options = server::Options { data_dir: Some(data.path().to_owned()), ..server::Options::default() };
    let server = server::ApiServer::start(options).await.unwrap();
    let refused = directory(data.path()).acquire_block().unwrap_err();
    assert!(matches!(&refused, ClusterStartError::InUse(path) if path == data.path()), "{refused:?}");
    server.stop().await;
}
