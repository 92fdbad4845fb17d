use std::{fs, sync::Weak, time::Duration};

use bytes::Bytes;
use kubewake_config::model::{FileExporter, FileFormat};
use tempfile::TempDir;

use super::*;
use crate::{
    core::{Batch, Charge, Origin, SendSuccess},
    exporter::file::build,
};

/// A resource of one log record, with a value of the attribute if there is one.
fn resource(record: &str, value: Option<&str>) -> String {
    let text = |value: &str| serde_json::to_string(value).unwrap();
    let attribute = value.map(|value| format!(r#"{{"key":"tenant","value":{{"stringValue":{}}}}}"#, text(value)));
    let logs = format!(r#"[{{"logRecords":[{{"eventName":"{record}"}}]}}]"#);
    format!(r#"{{"resource":{{"attributes":[{}]}},"scopeLogs":{logs}}}"#, attribute.unwrap_or_default())
}

fn part(resources: &[(&str, Option<&str>)]) -> Part {
    let resources: Vec<_> = resources.iter().map(|(record, value)| resource(record, *value)).collect();
    let json = format!(r#"{{"resourceLogs":[{}]}}"#, resources.join(","));
    let bytes: Bytes = kubewake_otlp::json::decode(Signal::Logs, json.as_bytes()).unwrap().into();
    Part::new(bytes, resources.len(), Arc::new(Origin::default()), Arc::new(Charge::exempt()))
}

fn settings(path: &Path) -> FileExporter {
    FileExporter {
        path: path.to_owned(),
        rotation: None,
        format: FileFormat::Json,
        append: false,
        flush_interval: Duration::from_secs(1),
        zstd: false,
        create_directory: None,
        group_by: Some(GroupBy { resource_attribute: "tenant".into(), max_open_files: 2 }),
    }
}

async fn send(settings: &FileExporter, resources: &[(&str, Option<&str>)]) -> SendSuccess {
    let batch = Batch::single(Signal::Logs, part(resources));
    build(settings).unwrap().exporter.send(&batch).await.unwrap()
}

/// The records in a file, in their order.
fn records(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.split("\"eventName\":\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

fn groups(directory: &Path, max_open_files: u32) -> FileGroups {
    let settings = GroupBy { resource_attribute: "tenant".into(), max_open_files };
    FileGroups::new(&directory.join("logs/*.json"), &settings, None).unwrap()
}

#[tokio::test]
async fn each_value_has_a_file_and_what_has_none_is_counted() {
    let directory = TempDir::new().unwrap();
    let settings = settings(&directory.path().join("new/*/logs.json"));
    let sent = [("1", Some("a")), ("2", Some("b/c")), ("3", None), ("4", Some("a"))];
    let delivered = send(&settings, &sent).await;
    assert_eq!(delivered.rejected.total(), 1);
    assert!(delivered.message.contains("tenant"), "{}", delivered.message);
    assert_eq!(records(&directory.path().join("new/a/logs.json")), ["1", "4"]);
    assert_eq!(records(&directory.path().join("new/b/c/logs.json")), ["2"]);
    // Written records stay, also when the file is opened again.
    assert_eq!(send(&settings, &[("5", Some("a"))]).await, SendSuccess::default());
    assert_eq!(records(&directory.path().join("new/a/logs.json")), ["1", "4", "5"]);
}

#[tokio::test]
async fn a_value_that_can_be_no_file_costs_only_its_own() {
    let directory = TempDir::new().unwrap();
    let settings = settings(&directory.path().join("*.json"));
    let long = "x".repeat(5000);
    let name = "y".repeat(MAX_VALUE_BYTES) + "é";
    let sent = [("1", Some("a")), ("2", Some(&*long)), ("3", Some("nul\u{0}")), ("4", Some(&*name)), ("5", Some("b"))];
    assert_eq!(send(&settings, &sent).await.rejected.total(), 3);
    // `a.json` is a file, and not a directory.
    let delivered = send(&settings, &[("6", Some("a.json/b")), ("7", Some("b"))]).await;
    assert_eq!(delivered.rejected.total(), 1);
    assert_eq!(records(&directory.path().join("a.json")), ["1"]);
    assert_eq!(records(&directory.path().join("b.json")), ["5", "7"]);
}

#[test]
fn no_value_leads_out_of_the_directory() {
    let directory = TempDir::new().unwrap();
    let base = directory.path().join("logs");
    let groups = groups(directory.path(), 1);
    for (value, file) in [
        ("a", "a.json"),
        ("../../etc/passwd", "etc/passwd.json"),
        ("/etc/passwd", "etc/passwd.json"),
        ("a/../../b", "b.json"),
        ("./a//b/.", "a/b.json"),
        ("..", ".json"),
    ] {
        assert_eq!(groups.path_for_value(value).unwrap(), base.join(file), "{value}");
    }
}

#[test]
fn only_so_many_files_are_open_and_those_that_were_closed_are_forgotten() {
    let directory = TempDir::new().unwrap();
    let groups = groups(directory.path(), 2);
    let path = |value: &str| groups.path_for_value(value).unwrap();
    let sinks: Vec<Weak<SharedFile>> =
        ["a", "b"].iter().map(|value| Arc::downgrade(&groups.open(&path(value)).unwrap())).collect();
    let is_open = |at: usize| sinks[at].strong_count() > 0;
    drop(groups.open(&path("a")).unwrap());
    drop(groups.open(&path("c")).unwrap());
    assert!(is_open(0), "it was used last");
    assert!(!is_open(1), "it was used before the other");
    assert_eq!(groups.open.lock().len(), 2);
    drop(groups.open(&path("d")).unwrap());
    assert!(!SharedFile::is_known(&path("b")), "nothing is kept of it");
}
