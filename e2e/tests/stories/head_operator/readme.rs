//! Somebody types what the example's README says, and sees the trace that it shows.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use kubewake_e2e::{
    eventually, free_address,
    process::{Process, example, workspace},
    traces::{Callers, Expected, Spans, Tree},
    until_ok,
};

use super::is_real;
use crate::stories::readme::{blocks, commands, shell};

const README: &str = "examples/head-operator/README.md";
const DEPLOY: &str = "examples/head-operator/deploy";

/// The files of the README and of the example, with free ports and our own build in them.
fn files(folder: &Path, swap: &dyn Fn(&str) -> String) {
    for block in blocks(README, "yaml") {
        let title = block.lines().next().unwrap().trim_start_matches("# ");
        let name = title.split(':').next().unwrap();
        fs::write(folder.join(name), swap(&block)).unwrap();
    }
    fs::create_dir_all(folder.join(DEPLOY)).unwrap();
    for entry in fs::read_dir(workspace().join(DEPLOY)).unwrap() {
        let path = entry.unwrap().path();
        let to = folder.join(DEPLOY).join(path.file_name().unwrap());
        fs::write(to, swap(&fs::read_to_string(path).unwrap())).unwrap();
    }
}

/// A registration is in force a moment after it was made; whoever types is slower.
fn until_called(folder: &Path) {
    eventually("the API server calls the webhook", || {
        let try_it = format!("kubectl apply -f {DEPLOY}/sample.yaml --dry-run=server -o yaml");
        let output = shell(&try_it, folder).env("KUBECONFIG", "kubeconfig").env("NO_PROXY", "*").output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("tracing.k8s.io/traceparent")
    });
}

#[test]
fn every_command_works_and_the_trace_is_the_one_that_is_shown() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return eprintln!("skipped, there is no kubectl");
    }
    let folder = tempfile::tempdir().unwrap();
    let usual = ["127.0.0.1:4317", "127.0.0.1:9443"];
    let ports: Vec<(&str, SocketAddr)> = usual.into_iter().map(|usual| (usual, free_address())).collect();
    let operator = example("head-operator").get_program().to_str().unwrap().to_owned();
    let swap = |text: &str| {
        let text = text.replace("target/debug/head-operator", &operator);
        ports.iter().fold(text, |text, (usual, free)| text.replace(usual, &free.to_string()))
    };
    files(folder.path(), &swap);
    let mut running = Vec::new();
    for command in commands(README) {
        let mut typed = shell(&swap(&command), folder.path());
        typed.env("KUBECONFIG", "kubeconfig").env("NO_PROXY", "*").env("HOME", folder.path());
        if command.contains("kubewake collector") || command.contains("kubewake webhook") {
            running.push(Process::start(&mut typed));
        } else if command.contains("kubewake cluster") {
            let command = format!("{} --listen 127.0.0.1:0", swap(&command));
            running.push(Process::start(&mut shell(&command, folder.path())));
        } else {
            if command.starts_with("cargo build") || command.starts_with("export") {
                continue;
            }
            let output = typed.output().unwrap();
            assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
            continue;
        }
        running.last_mut().unwrap().ready();
        if command.contains("kubewake webhook") {
            until_called(folder.path());
        }
    }
    assert_eq!(running.len(), 3, "a collector, a cluster and a webhook");
    let shown = Expected::read(&blocks(README, "text").remove(0), Callers::Trusted);
    until_ok(|| {
        let spans = Spans::in_file(&folder.path().join("spans.json"));
        let trace = spans.named("stamp Head").find(|span| is_real(span)).ok_or("a Head is stamped")?.id.trace.clone();
        shown.differences(&Tree::of(&spans, &trace, Callers::Trusted)).map_or(Ok(()), Err)
    });
    // Those who send end before those who are told.
    running.reverse();
}
