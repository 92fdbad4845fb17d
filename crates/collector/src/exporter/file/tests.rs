use std::{fs, path::Path};

use bytes::Bytes;
use kubewake_config::model::FileFormat;
use kubewake_otlp::Signal;
use tempfile::TempDir;

use super::*;
use crate::core::{Charge, ErrorClass, Origin, Part};

/// 2023-11-14T22:13:20Z
fn fixed_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn part(name: &str) -> Part {
    let json = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"eventName":"{name}"}}]}}]}}]}}"#);
    let bytes: Bytes = kubewake_otlp::json::decode(Signal::Logs, json.as_bytes()).expect("OTLP JSON").into();
    Part::new(bytes, 1, Arc::new(Origin::default()), Arc::new(Charge::exempt()))
}

fn batch(names: &[&str]) -> Batch {
    let mut batch = Batch::empty(Signal::Logs);
    names.iter().for_each(|name| batch.push(part(name)));
    batch
}

fn line(name: &str) -> String {
    format!("{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"eventName\":\"{name}\"}}]}}]}}]}}\n")
}

fn settings(directory: &Path) -> FileExporter {
    FileExporter {
        path: directory.join("logs.json"),
        rotation: None,
        format: FileFormat::Json,
        append: false,
        flush_interval: Duration::from_secs(1),
        zstd: false,
        create_directory: None,
        group_by: None,
    }
}

fn exporter(settings: &FileExporter) -> Arc<dyn Exporter> {
    build_with(settings, fixed_time).expect("builds").exporter
}

fn directory() -> TempDir {
    TempDir::new().expect("a directory")
}

fn read(settings: &FileExporter) -> String {
    fs::read_to_string(&settings.path).expect("a file")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn each_request_is_a_line() {
    let directory = directory();
    let settings = settings(directory.path());
    let exporter = exporter(&settings);
    exporter.send(&batch(&["a", "b"])).await.expect("written");
    exporter.send(&batch(&["c"])).await.expect("written");
    assert_eq!(read(&settings), [line("a"), line("b"), line("c")].concat());
}

#[tokio::test]
async fn protobuf_has_its_length_before_it() {
    let directory = directory();
    let settings = FileExporter { format: FileFormat::Proto, ..settings(directory.path()) };
    exporter(&settings).send(&batch(&["a", "bc"])).await.expect("written");
    let content = fs::read(&settings.path).expect("a file");
    let mut expected = Vec::new();
    for name in ["a", "bc"] {
        let bytes = part(name).bytes;
        expected.extend((bytes.len() as u32).to_be_bytes());
        expected.extend(&bytes);
    }
    assert_eq!(content, expected);
}

#[tokio::test]
async fn an_old_file_is_emptied_with_the_first_data_unless_it_is_to_be_kept() {
    let directory = directory();
    let mut settings = settings(directory.path());
    fs::write(&settings.path, "old\n").expect("written");
    let first = exporter(&settings);
    assert_eq!(read(&settings), "old\n", "building one touches nothing");
    first.send(&batch(&["a"])).await.expect("written");
    assert_eq!(read(&settings), line("a"));

    settings.path = directory.path().join("kept.json");
    settings.append = true;
    fs::write(&settings.path, "old\n").expect("written");
    exporter(&settings).send(&batch(&["a"])).await.expect("written");
    assert_eq!(read(&settings), format!("old\n{}", line("a")));
}

#[tokio::test]
async fn a_new_configuration_does_not_empty_what_this_process_wrote() {
    let directory = directory();
    let settings = settings(directory.path());
    let old = exporter(&settings);
    old.send(&batch(&["a"])).await.expect("written");
    let new = exporter(&settings);
    new.send(&batch(&["b"])).await.expect("written");
    old.send(&batch(&["c"])).await.expect("written");
    drop((old, new));
    exporter(&settings).send(&batch(&["d"])).await.expect("written");
    assert_eq!(read(&settings), ["a", "b", "c", "d"].map(line).concat());
}

#[tokio::test]
async fn a_path_is_the_same_whatever_leads_to_it() {
    let directory = directory();
    std::os::unix::fs::symlink(directory.path(), directory.path().join("link")).expect("a link");
    let direct = settings(directory.path());
    let linked = settings(&directory.path().join("link"));
    exporter(&direct).send(&batch(&["a"])).await.expect("written");
    exporter(&linked).send(&batch(&["b"])).await.expect("written");
    assert_eq!(read(&direct), ["a", "b"].map(line).concat());
}

#[tokio::test]
async fn a_line_that_a_crash_left_unfinished_is_ended_first() {
    let directory = directory();
    let settings = FileExporter { append: true, ..settings(directory.path()) };
    fs::write(&settings.path, "{\"half").expect("written");
    exporter(&settings).send(&batch(&["a"])).await.expect("written");
    assert_eq!(read(&settings), format!("{{\"half\n{}", line("a")));
}

#[tokio::test]
async fn lines_of_many_senders_do_not_mix() {
    let directory = directory();
    let settings = settings(directory.path());
    let long = "x".repeat(50_000);
    let senders: Vec<_> = (0..16)
        .map(|_| {
            let exporter = exporter(&settings);
            let long = long.clone();
            tokio::spawn(async move { exporter.send(&batch(&[&long, &long])).await })
        })
        .collect();
    for sender in senders {
        sender.await.expect("ends").expect("written");
    }
    let content = read(&settings);
    assert_eq!(content.lines().count(), 32);
    assert!(content.split_inclusive('\n').all(|written| written == line(&long)));
}

#[tokio::test]
async fn a_directory_that_goes_is_a_local_failure_that_passes() {
    let directory = directory();
    let missing = directory.path().join("later");
    let settings = settings(&missing);
    assert!(build(&settings).is_err(), "it must be there at the start");
    fs::create_dir(&missing).expect("a directory");
    let built = build(&settings).expect("builds");
    assert!(built.retry.is_some());
    fs::remove_dir_all(&missing).expect("removed");
    let error = built.exporter.send(&batch(&["a"])).await.expect_err("no directory");
    assert_eq!((error.class, error.retryable), (ErrorClass::Local, true));
    assert!(error.message.contains("later/logs.json: No such file or directory"), "{error}");
    fs::create_dir(&missing).expect("a directory");
    built.exporter.send(&batch(&["a"])).await.expect("written");
    assert_eq!(read(&settings), line("a"));
}

#[tokio::test]
async fn a_full_disk_is_a_local_failure_that_may_pass() {
    let settings = FileExporter { path: "/dev/full".into(), ..settings(Path::new("/dev")) };
    let error = exporter(&settings).send(&batch(&["a"])).await.expect_err("full");
    assert_eq!((error.class, error.retryable), (ErrorClass::Local, true));
    assert!(error.message.contains("/dev/full: No space left on device"), "{error}");
}

#[tokio::test]
async fn a_directory_is_no_file() {
    assert!(build(&FileExporter { path: "/".into(), ..settings(Path::new("/")) }).is_err());
    let directory = directory();
    let settings = FileExporter { path: directory.path().into(), ..settings(directory.path()) };
    assert!(build(&settings).is_err());
}

#[tokio::test]
async fn what_has_no_json_is_refused_and_nothing_is_written() {
    let directory = directory();
    let settings = settings(directory.path());
    let bad = Part { bytes: Bytes::from_static(b"\x0a\xff"), ..part("a") };
    let mut batch = batch(&["a"]);
    batch.push(bad);
    let error = exporter(&settings).send(&batch).await.expect_err("malformed");
    assert!(!error.retryable && error.code.blames_data(), "{error}");
    assert_eq!(read(&settings), "");
}

fn rotating(directory: &Path, rotation: RotationConfig) -> FileExporter {
    FileExporter { rotation: Some(rotation), ..settings(directory) }
}

/// More than half of a megabyte, so that two of them exceed one.
fn large(tag: &str) -> String {
    tag.repeat(600_000)
}

#[tokio::test]
async fn a_full_file_is_renamed_by_its_time() {
    let directory = directory();
    let settings = rotating(directory.path(), RotationConfig { max_megabytes: 1, ..RotationConfig::default() });
    let exporter = exporter(&settings);
    for tag in ["a", "b", "c"] {
        exporter.send(&batch(&[&large(tag)])).await.expect("written");
    }
    let expected = ["logs-2023-11-14T22-13-20.000.json", "logs-2023-11-14T22-13-20.001.json", "logs.json"];
    assert_eq!(names(directory.path()), expected);
    let oldest = fs::read_to_string(directory.path().join(expected[0])).expect("a file");
    assert_eq!(oldest, line(&large("a")));
    assert_eq!(read(&settings), line(&large("c")));
}

#[tokio::test]
async fn a_rotated_file_is_kept_at_the_start() {
    let directory = directory();
    let settings = rotating(directory.path(), RotationConfig::default());
    fs::write(&settings.path, "old\n").expect("written");
    exporter(&settings).send(&batch(&["a"])).await.expect("written");
    assert_eq!(read(&settings), format!("old\n{}", line("a")));
}

#[tokio::test]
async fn only_so_many_and_so_old_files_are_kept() {
    let directory = directory();
    let rotation = RotationConfig { max_megabytes: 1, max_backups: 2, max_days: 1, localtime: false };
    let settings = rotating(directory.path(), rotation);
    for name in [
        "logs-2023-11-14T20-00-00.000.json",
        "logs-2023-11-14T21-00-00.000.json",
        "logs-2023-11-13T22-00-00.000.json",
        "logs-other.json",
        "logs-2023-11-01T00-00-00.000.txt",
    ] {
        fs::write(directory.path().join(name), "").expect("written");
    }
    let exporter = exporter(&settings);
    for tag in ["a", "b"] {
        exporter.send(&batch(&[&large(tag)])).await.expect("written");
    }
    let expected = [
        "logs-2023-11-01T00-00-00.000.txt",
        "logs-2023-11-14T21-00-00.000.json",
        "logs-2023-11-14T22-13-20.000.json",
        "logs-other.json",
        "logs.json",
    ];
    assert_eq!(names(directory.path()), expected);
}

#[test]
fn a_name_without_an_extension_gets_the_time_at_its_end() {
    let rotation = RotationConfig { max_days: 0, ..RotationConfig::default() };
    let name = rotation::backup_name(Path::new("/var/log/spans"), &rotation, fixed_time() + Duration::from_millis(5));
    assert_eq!(name, Path::new("/var/log/spans-2023-11-14T22-13-20.005"));
}

#[tokio::test]
async fn compressed_requests_have_their_length_before_them_in_either_format() {
    let directory = directory();
    for (format, name) in [(FileFormat::Json, "json"), (FileFormat::Proto, "proto")] {
        let path = directory.path().join(name);
        let settings = FileExporter { path, format, zstd: true, ..settings(directory.path()) };
        let exporter = exporter(&settings);
        exporter.send(&batch(&["a"])).await.expect("written");
        exporter.send(&batch(&["b"])).await.expect("written");
        let content = fs::read(&settings.path).expect("a file");
        let mut rest = &content[..];
        for name in ["a", "b"] {
            let (length, after) = rest.split_at(4);
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            let request = zstd::decode_all(&after[..length]).expect("zstd");
            let expected = match format {
                FileFormat::Json => line(name).trim_end().as_bytes().to_vec(),
                FileFormat::Proto => part(name).bytes.to_vec(),
            };
            assert_eq!(request, expected);
            rest = &after[length..];
        }
        assert!(rest.is_empty());
    }
}

#[tokio::test]
async fn directories_are_created_if_the_settings_say_so() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let settings = settings(&directory.path().join("a/b"));
    let problem = build_with(&settings, fixed_time).err().expect("no directory").0;
    assert!(problem.contains("a/b/logs.json"), "{problem}");
    let settings = FileExporter { create_directory: Some(0o700), ..settings };
    exporter(&settings).send(&batch(&["a"])).await.expect("written");
    assert_eq!(read(&settings), line("a"));
    let mode = fs::metadata(directory.path().join("a")).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn new_files_are_for_their_owner_alone_and_old_ones_keep_their_mode() {
    use kubewake_config::model::GroupBy;
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let directory = directory();
    let settings = settings(directory.path());
    let exporter_of_one = exporter(&settings);
    assert_eq!(mode(&settings.path), 0o600, "before anything is written");
    fs::set_permissions(&settings.path, fs::Permissions::from_mode(0o644)).expect("to be changed");
    exporter_of_one.send(&batch(&["a"])).await.expect("written");
    assert_eq!(mode(&settings.path), 0o644);

    let rotation = RotationConfig { max_megabytes: 0, max_days: 0, max_backups: 0, localtime: false };
    let path = directory.path().join("rotated.json");
    let rotated = FileExporter { path: path.clone(), rotation: Some(rotation), ..settings.clone() };
    exporter(&rotated).send(&batch(&["a"])).await.expect("written");
    exporter(&rotated).send(&batch(&["b"])).await.expect("written");
    assert_eq!((mode(&path), mode(&backup_of(&path))), (0o600, 0o600));

    let group = GroupBy { resource_attribute: "name".into(), max_open_files: 10 };
    let path = directory.path().join("groups/*/logs.json");
    let grouped = FileExporter { path, group_by: Some(group), ..settings };
    let json = r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"name","value":{"stringValue":"ada"}}]},
                   "scopeLogs":[{"logRecords":[{}]}]}]}"#;
    let bytes: Bytes = kubewake_otlp::json::decode(Signal::Logs, json.as_bytes()).expect("OTLP JSON").into();
    let one = Part::new(bytes, 1, Arc::default(), Arc::new(Charge::exempt()));
    exporter(&grouped).send(&Batch::single(Signal::Logs, one)).await.expect("written");
    let groups = directory.path().join("groups");
    assert_eq!(["", "ada", "ada/logs.json"].map(|name| mode(&groups.join(name))), [0o700, 0o700, 0o600]);
}

/// The backup that was made when the file was full.
fn backup_of(path: &Path) -> std::path::PathBuf {
    let stem = path.file_stem().expect("a name").to_string_lossy().into_owned() + "-";
    let files =
        fs::read_dir(path.parent().expect("a directory")).expect("a list").map(|entry| entry.expect("a file").path());
    let is_backup = |file: &std::path::PathBuf| file.file_name().expect("a name").to_string_lossy().starts_with(&*stem);
    files.into_iter().find(is_backup).expect("a backup")
}
