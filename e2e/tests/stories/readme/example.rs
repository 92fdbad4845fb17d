//! Somebody types what the README of an example says.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use kubewake_e2e::{
    free_address,
    process::{ChildProcess, example, workspace},
    traces::SpanSet,
    wait_until,
};
use tempfile::TempDir;

use super::{blocks, commands, shell};

/// An example whose README was followed: a collector, a cluster and a webhook run.
pub struct Followed {
    folder: TempDir,
    running: Vec<ChildProcess>,
}

impl Followed {
    /// Types all that the README in this folder says, with this program of ours in its place. None where there
    /// is no kubectl.
    pub fn typed(directory: &str, program: &str) -> Option<Self> {
        if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
            eprintln!("skipped, there is no kubectl");
            return None;
        }
        let usual = ["127.0.0.1:4317", "127.0.0.1:9443"];
        let ports: Vec<(&str, SocketAddr)> = usual.into_iter().map(|usual| (usual, free_address())).collect();
        let ours = example(program).get_program().to_str().unwrap().to_owned();
        let swap = |text: &str| {
            let text =
                text.replace(&format!("target/debug/{program}"), &ours).replace("target/debug/kubewake ", "kubewake ");
            ports.iter().fold(text, |text, (usual, free)| text.replace(usual, &free.to_string()))
        };
        let mut followed = Self { folder: tempfile::tempdir().unwrap(), running: Vec::new() };
        files(directory, followed.folder.path(), &swap);
        for command in commands(&format!("{directory}/README.md")) {
            followed.follow(directory, &command, &swap(&command));
        }
        assert_eq!(followed.running.len(), 3, "a collector, a cluster and a webhook");
        Some(followed)
    }

    fn follow(&mut self, directory: &str, command: &str, typed: &str) {
        if command.starts_with("cargo build") || command.starts_with("export") {
            return;
        }
        let is_server =
            ["collector", "cluster", "webhook"].iter().any(|it| command.contains(&format!("kubewake {it}")));
        if !is_server {
            let output = self.shell(typed).output().unwrap();
            assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let listen = if command.contains("kubewake cluster") { " --listen 127.0.0.1:0" } else { "" };
        // In a terminal of its own: what is exported in this one is not known there.
        let mut process = ChildProcess::start(self.shell(&format!("{typed}{listen}")).env_remove("KUBECONFIG"));
        process.wait_until_ready();
        self.running.push(process);
        if command.contains("kubewake webhook") {
            self.until_called(directory);
        }
    }

    /// A registration is in force a moment after it was made; whoever types is slower.
    fn until_called(&self, directory: &str) {
        wait_until("the API server calls the webhook", || {
            let try_it = format!("kubectl apply -f {directory}/deploy/sample.yaml --dry-run=server -o yaml");
            let output = self.shell(&try_it).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains("tracing.k8s.io/traceparent")
        });
    }

    fn shell(&self, typed: &str) -> Command {
        let mut shell = shell(typed, self.folder.path());
        shell.env("KUBECONFIG", "kubeconfig").env("NO_PROXY", "*").env("HOME", self.folder.path());
        shell
    }

    /// The spans that the collector has so far.
    pub fn spans(&self) -> SpanSet {
        SpanSet::in_file(&self.folder.path().join("spans.json"))
    }
}

impl Drop for Followed {
    /// Those who send end before those who are told.
    fn drop(&mut self) {
        self.running.reverse();
    }
}

/// The files of the README and of the example, with free ports and our own build in them.
fn files(directory: &str, folder: &Path, swap: &dyn Fn(&str) -> String) {
    for block in blocks(&format!("{directory}/README.md"), "yaml") {
        let title = block.lines().next().unwrap().trim_start_matches("# ");
        let name = title.split(':').next().unwrap();
        // The usual port of metrics is one for all stories.
        let quiet = "service: {telemetry: {metrics: {level: none}}, pipelines";
        fs::write(folder.join(name), swap(&block).replace("service: {pipelines", quiet)).unwrap();
    }
    let deploy = format!("{directory}/deploy");
    fs::create_dir_all(folder.join(&deploy)).unwrap();
    for entry in fs::read_dir(workspace().join(&deploy)).unwrap() {
        let path = entry.unwrap().path();
        let to = folder.join(&deploy).join(path.file_name().unwrap());
        fs::write(to, swap(&fs::read_to_string(path).unwrap())).unwrap();
    }
}
