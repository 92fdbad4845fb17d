//! Somebody types what the documents say.
//!
//! Every command in a `sh` block of the documents is run here, on ports that are free; a command that this file
//! does not know fails the test.

pub(super) mod example;

use std::{fs, net::SocketAddr, path::Path, process::Command};

use kubewake_e2e::{
    free_address, http,
    process::{ChildProcess, kubewake, workspace},
    python::python,
    wait_until,
};

/// The blocks of a document in their order: the language, and the lines without what they are indented by.
pub(super) fn in_order(document: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(workspace().join(document)).unwrap();
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut open: Option<usize> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        match (open, bare.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(line.len() - bare.len());
                blocks.push((language.to_owned(), String::new()));
            }
            (Some(_), Some(_)) => open = None,
            (Some(indent), None) => {
                let block = &mut blocks.last_mut().unwrap().1;
                *block += line.get(indent..).unwrap_or_default();
                *block += "\n";
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The lines of the blocks of one language.
pub(super) fn blocks(document: &str, language: &str) -> Vec<String> {
    in_order(document).into_iter().filter(|(it, _)| it == language).map(|(_, block)| block).collect()
}

/// The commands of a block, each with its comment: a line each; a quoted argument may go over several lines.
pub(super) fn commands_in(block: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match out.last_mut() {
            Some((open, _)) if open.matches('\'').count() % 2 == 1 => *open += &format!("\n{line}"),
            _ => {
                let (command, comment) = line.split_once("   #").unwrap_or((line, ""));
                out.push((command.trim_end().to_owned(), comment.trim().to_owned()));
            }
        }
    }
    out.retain(|(command, _)| !command.is_empty());
    out
}

/// The commands of the `sh` blocks, without comments.
pub(super) fn commands(document: &str) -> Vec<String> {
    let blocks = blocks(document, "sh");
    blocks.iter().flat_map(|block| commands_in(block)).map(|(command, _)| command).collect()
}

/// The usual ports, each with a free one in its place.
struct Ports(Vec<(&'static str, SocketAddr)>);

impl Ports {
    fn new() -> Self {
        let usual = [
            "127.0.0.1:4317",
            "127.0.0.1:4318",
            "127.0.0.1:14317",
            "127.0.0.1:13133",
            "127.0.0.1:8888",
            "127.0.0.1:6443",
            "127.0.0.1:6444",
        ];
        Self(usual.into_iter().map(|usual| (usual, free_address())).collect())
    }

    fn swap(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (usual, free)| text.replace(usual, &free.to_string()))
    }

    fn of(&self, wanted: &str) -> SocketAddr {
        self.0.iter().find(|(usual, _)| *usual == wanted).unwrap().1
    }
}

/// The document of the collector's page, with its endpoints on free ports.
fn document(ports: &Ports, folder: &Path) {
    let yaml = blocks("docs/collector.md", "yaml").remove(0);
    let health = format!("health_check: {{endpoint: {}}}", ports.of("127.0.0.1:13133"));
    let metrics = ports.of("127.0.0.1:8888");
    let telemetry = format!(
        "service:\n  telemetry: {{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {}}}}}}}}}]}}}}",
        metrics.port()
    );
    let yaml = ports.swap(&yaml).replace("health_check: {}", &health).replace("service:", &telemetry);
    fs::write(folder.join("collector.yaml"), yaml).unwrap();
}

pub(super) fn shell(command: &str, folder: &Path) -> Command {
    let binary = kubewake();
    let mut shell = Command::new("sh");
    let command = command.replace("kubewake ", &format!("exec {} ", binary.get_program().to_str().unwrap()));
    // Not every machine that runs tests has it there.
    let there = "/usr/bin/python3";
    let command = if command.contains(there) { command.replace(there, python().to_str().unwrap()) } else { command };
    shell.arg("-c").arg(command).current_dir(folder);
    shell
}

#[test]
fn every_command_of_the_collectors_page_works() {
    let ports = Ports::new();
    let folder = tempfile::tempdir().unwrap();
    document(&ports, folder.path());
    // What the page starts in its own order: a backend, then the collector, then senders.
    let backend = ports.of("127.0.0.1:14317");
    let mut sink = None;
    let mut collector = None;
    let mut senders = Vec::new();
    let mut all = commands("docs/collector.md");
    all.sort_by_key(|command| !command.starts_with("kubewake sink"));
    for command in all {
        let typed = ports.swap(&command);
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["kubewake", "sink", ..] => sink = Some(started(&typed, folder.path())),
            ["kubewake", "collector", "--config", ..] => collector = Some(started(&typed, folder.path())),
            ["kubewake", "load", ..] | ["curl", ..] => senders.push(typed),
            ["kubewake", ..] => assert!(shell(&typed, folder.path()).status().unwrap().success(), "{command}"),
            // What runs this test, or takes an hour.
            ["cargo", "xtask", "bench"] => {}
            _ => panic!("nobody knows how to test {command:?}"),
        }
    }
    assert!(sink.is_some() && collector.is_some(), "the page starts a backend and a collector");
    let sent = senders.len();
    for command in senders {
        // Ten seconds of load are for people; one shows that the command works.
        let command = command.replace("--seconds 10", "--seconds 1");
        let output = shell(&command, folder.path()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(sent, 2, "curl and load");
    wait_until("the backend got the curl's span and the load's", || {
        http::get(backend, "/stats").json()["items"].as_u64() == Some(10_001)
    });
}

fn started(command: &str, folder: &Path) -> ChildProcess {
    let mut process = ChildProcess::start(&mut shell(command, folder));
    process.wait_until_ready();
    process
}

#[test]
fn every_command_of_the_api_servers_page_works() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return eprintln!("skipped, there is no kubectl");
    }
    let ports = Ports::new();
    let folder = tempfile::tempdir().unwrap();
    let mut server = None;
    for command in commands("docs/apiserver.md") {
        let typed = ports.swap(&command);
        match command.split_whitespace().next().unwrap() {
            "kubewake" => server = Some(started(&typed, folder.path())),
            "kubectl" => assert!(shell(&typed, folder.path()).status().unwrap().success(), "{command}"),
            _ => panic!("nobody knows how to test {command:?}"),
        }
    }
    assert!(server.is_some());
}

#[test]
fn contributors_are_told_only_of_commands_that_exist() {
    // They run this test.
    let known = [".ci/run", "cargo xtask test", "cargo xtask test --cluster ./kubeconfig", "cargo xtask test --long"];
    for command in commands("CONTRIBUTING.md") {
        assert!(known.contains(&&*command), "nobody knows how to test {command:?}");
    }
    assert!(workspace().join(".ci/run").exists());
}

#[test]
fn every_command_of_the_migration_works() {
    let ports = Ports::new();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("collector.yaml");
    let [file, mended] = blocks("docs/migrating.md", "yaml").try_into().unwrap();
    fs::write(&config, ports.swap(&file)).unwrap();
    let validate = "kubewake collector validate --config collector.yaml";
    let refused = shell(validate, folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    let shown = blocks("docs/migrating.md", "text").remove(0);
    assert!(!refused.status.success());
    assert!(shown.lines().all(|line| said.contains(line)), "{shown}\nis not what it says:\n{said}");

    let metrics = "service:\n  telemetry: {metrics: {level: none}}";
    let better = mended.lines().find(|line| line.contains("filter:")).unwrap();
    let of = |line: &str| if line.contains("filter: {") { better.to_owned() } else { line.to_owned() };
    let file = file.lines().map(of).collect::<Vec<_>>().join("\n").replace("service:", metrics);
    fs::write(&config, ports.swap(&file)).unwrap();
    for command in commands("docs/migrating.md") {
        if command.starts_with("kubewake collector --config") {
            started(&command, folder.path());
        } else {
            assert!(shell(&command, folder.path()).status().unwrap().success(), "{command}");
        }
    }
}

#[test]
fn every_command_of_the_cluster_document_works() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return eprintln!("skipped, there is no kubectl");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("web.yaml"), blocks("docs/cluster.md", "yaml").remove(0)).unwrap();
    let mut cluster = None;
    for command in commands("docs/cluster.md") {
        if command.starts_with("kubewake cluster") {
            let mut process =
                ChildProcess::start(&mut shell(&format!("{command} --listen 127.0.0.1:0"), folder.path()));
            process.wait_until_ready();
            cluster = Some(process);
            continue;
        }
        let mut typed = shell(&command, folder.path());
        let output = typed.env("KUBECONFIG", "kubeconfig").env("NO_PROXY", "*").output().unwrap();
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        if command.starts_with("curl") {
            assert_eq!(String::from_utf8_lossy(&output.stdout), "Hello from a pod\n");
        }
    }
    assert!(cluster.is_some(), "the document starts a cluster");
}

#[test]
fn every_command_of_the_webhook_document_works() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return eprintln!("skipped, there is no kubectl");
    }
    let ports = Ports::new();
    let folder = tempfile::tempdir().unwrap();
    let tracing = ports.swap(&blocks("docs/webhook.md", "yaml").remove(0));
    fs::write(folder.path().join("tracing.yaml"), tracing).unwrap();
    let mut running = Vec::new();
    for command in commands("docs/webhook.md") {
        // A collector need not be there, and the manifests have a story of their own.
        if command.starts_with("export ") || command == "kubectl apply -k deploy/webhook" {
            continue;
        }
        let is_server = command.contains("kubewake ");
        let listen = if is_server { " --listen 127.0.0.1:0" } else { "" };
        let mut typed = shell(&format!("{}{listen}", ports.swap(&command)), folder.path());
        typed.env("KUBECONFIG", "kubeconfig").env("NO_PROXY", "*");
        if is_server {
            // In a terminal of its own: what is exported in this one is not known there.
            typed.env_remove("KUBECONFIG").env("HOME", folder.path());
            let mut process = ChildProcess::start(&mut typed);
            process.wait_until_ready();
            running.push(process);
            continue;
        }
        if command.starts_with("kubectl create") {
            // A registration is in force a moment after it was made, which is over before a person has typed this.
            let probe = format!("{command} --dry-run=server -o yaml");
            wait_until("the API server calls", || {
                let mut probe = shell(&probe, folder.path());
                let output = probe.env("KUBECONFIG", "kubeconfig").env("NO_PROXY", "*").output().unwrap();
                String::from_utf8_lossy(&output.stdout).contains("traceparent")
            });
        }
        let output = typed.output().unwrap();
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        if command.contains("get configmap") {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let shown = blocks("docs/webhook.md", "text").remove(0);
            let keys = shown.lines().filter_map(|line| line.trim().split_once(": ")).map(|(key, _)| key);
            keys.for_each(|key| assert!(said.contains(key), "{key} is not in\n{said}"));
        }
    }
    assert_eq!(running.len(), 2, "an API server and a webhook");
}

#[test]
fn the_documents_about_kubernetes_are_valid() {
    let yamls = blocks("docs/kubernetes.md", "yaml");
    assert_eq!(yamls.len(), 3);
    for yaml in yamls {
        let output = kubewake_e2e::CollectorProcess::with_config(yaml).env("NODE_NAME", "node-1".into()).validate();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
