//! The receiver in whole documents.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    time::Duration,
};

use kubewake_config::{FixedSources, load};

use super::*;
use crate::engine::{Engine, EngineOptions};

/// A document whose pipeline joins and filters the lines and writes them to these files.
fn document(directory: &Path, exporters: &[&str]) -> kubewake_config::CollectorDocument {
    let directory = directory.display();
    let listed = exporters.iter().map(|name| format!("  file/{name}: {{path: {directory}/{name}.json}}\n"));
    let names: Vec<String> = exporters.iter().map(|name| format!("file/{name}")).collect();
    let text = format!(
        "
receivers:
  file_log: {{include: ['{directory}/*.log'], start_at: beginning}}
processors:
  batch: {{timeout: 10ms}}
  filter: {{logs: {{exclude: {{match_type: strict, bodies: [secret]}}}}}}
exporters:
{}
service: {{pipelines: {{logs: {{receivers: [file_log], processors: [batch, filter], exporters: [{}]}}}}}}",
        listed.collect::<String>(),
        names.join(", ")
    );
    load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}")).document
}

fn has(directory: &Path, exporter: &str, line: &str) -> bool {
    let found = fs::read_to_string(directory.join(format!("{exporter}.json"))).unwrap_or_default();
    found.matches(&format!("\"{line}\"")).count() == 1
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_pass_a_document_its_reload_and_a_restart_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let options = || EngineOptions {
        state_directory: Some(path.join("state")),
        drain_limit: Duration::from_secs(30),
        ..EngineOptions::default()
    };
    let log = path.join("a.log");
    let append = |text: &str| {
        let mut file = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append("first\nsecret\n");
    let engine = Engine::new(options());
    engine.apply(&document(path, &["one"])).await.unwrap();
    wait_until("the first line", || has(path, "one", "first")).await;
    engine.apply(&document(path, &["one", "two"])).await.unwrap();
    wait_until("the first line", || has(path, "two", "first")).await;
    append("second\n");
    wait_until("the second line", || has(path, "one", "second") && has(path, "two", "second")).await;
    engine.stop().await;
    append("third\n");
    let engine = Engine::new(options());
    engine.apply(&document(path, &["one", "two"])).await.unwrap();
    wait_until("the third line", || has(path, "one", "third") && has(path, "two", "third")).await;
    engine.stop().await;
    for exporter in ["one", "two"] {
        assert!(["first", "second", "third"].iter().all(|line| has(path, exporter, line)));
        assert!(!has(path, exporter, "secret"));
    }
}
