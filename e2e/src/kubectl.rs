//! `kubectl`, the client that everybody has, in a namespace of its own.
//!
//! Commands are written as one types them, but nothing is quoted: a space always parts two arguments. `$KUBEWAKE_KUBECTL` is the
//! program, by default the one in the path. It is known which version it is, since Debian still has one that is years old.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    thread::{self, JoinHandle},
};

use serde_json::Value;

use crate::{Cluster, process::Process, until};

/// A client of a cluster.
pub struct Kubectl {
    cluster: Cluster,
    namespace: String,
    minor: u32,
    /// What goes with it, with more arguments of `delete`.
    made: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Done {
    /// The exit code.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl Kubectl {
    /// On a cluster of its own. None, with a line that says so, where there is no kubectl.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same; an API server of its own gets these arguments.
    pub fn start_with(args: &[&str]) -> Option<Self> {
        known_version().map(|minor| Self::of(Cluster::start_with(args), minor))
    }

    /// On a cluster with nodes that run programs, with these arguments of `kubewake cluster`. None where there is no kubectl.
    pub fn with_nodes(args: &[&str]) -> Option<Self> {
        known_version().map(|minor| Self::of(Cluster::with_nodes(args), minor))
    }

    fn of(cluster: Cluster, minor: u32) -> Self {
        let namespace = cluster.unique_name();
        let kubectl = Self { cluster, namespace, minor, made: Vec::new() };
        kubectl.ok(&format!("create namespace {}", kubectl.namespace));
        kubectl
    }

    /// Where it works.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Starts the cluster again, which has ended.
    pub fn restart(&mut self) {
        self.cluster.restart();
    }

    /// The process that is the cluster.
    pub fn process(&mut self) -> &mut Process {
        self.cluster.process().expect("the cluster is ours")
    }

    /// Where commands work unless they say otherwise.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Removes these objects in the end, however the story ends, where the cluster is not its own. Those that were named first go first.
    pub fn removes(&mut self, manifest: &str, more: &str) {
        self.made.push((manifest.to_owned(), more.to_owned()));
    }

    /// Whether the program is new enough for something that came with Kubernetes 1.`minor`. A line says so where it is not.
    pub fn since(&self, minor: u32, what: &str) -> bool {
        if self.minor < minor {
            say(&format!("SKIPPED: kubectl 1.{} has no {what}, which came with 1.{minor}", self.minor));
        }
        self.minor >= minor
    }

    /// Runs a command that must end well, and gives what it prints.
    pub fn ok(&self, command: &str) -> String {
        self.ok_with(command, "")
    }

    /// The same, with a file on its standard input.
    pub fn ok_with(&self, command: &str, input: &str) -> String {
        let done = self.run(command, input);
        assert_eq!(done.code, 0, "kubectl {command}\n{}{}", done.stdout, done.stderr);
        done.stdout
    }

    /// The same of a command that reads and then writes, again and again while another writer is faster. Controllers are, on any cluster but a bare API server.
    pub fn ok_despite_conflicts(&self, command: &str, input: &str) -> String {
        until(&format!("kubectl {command} meets no other writer"), || {
            let done = self.run(command, input);
            let is_conflict = done.code != 0 && done.stderr.contains("the object has been modified");
            assert!(done.code == 0 || is_conflict, "kubectl {command}\n{}{}", done.stdout, done.stderr);
            (done.code == 0).then_some(done.stdout)
        })
    }

    /// Runs a command that must end well on files that say themselves in which namespaces they are.
    pub fn ok_anywhere(&self, command: &str, input: &str) -> String {
        let done = self.run_anywhere(command, input);
        assert_eq!(done.code, 0, "kubectl {command}\n{}{}", done.stdout, done.stderr);
        done.stdout
    }

    /// The same, whatever comes of it.
    pub fn run_anywhere(&self, command: &str, input: &str) -> Done {
        self.run_in(self.bare(command), input)
    }

    /// Runs a command that must fail, and gives what it complains of.
    pub fn fails(&self, command: &str) -> String {
        self.fails_with(command, "")
    }

    /// The same, with a file on its standard input.
    pub fn fails_with(&self, command: &str, input: &str) -> String {
        let done = self.run(command, input);
        assert_eq!(done.code, 1, "kubectl {command}\n{}{}", done.stdout, done.stderr);
        done.stderr
    }

    /// Runs a command, whatever comes of it.
    pub fn run(&self, command: &str, input: &str) -> Done {
        self.run_in(self.command(command), input)
    }

    /// Edits an object with a shell command, in which `$1` is the file.
    pub fn edit(&self, object: &str, editor: &str) -> Done {
        let script = self.cluster.folder().join("editor.sh");
        fs::write(&script, editor).unwrap();
        let mut command = self.command(&format!("edit {object}"));
        command.env("KUBE_EDITOR", format!("sh {}", script.display()));
        self.run_in(command, "")
    }

    /// Applies something as a client of its own, beside others, and says whether that went well.
    pub fn applying(&self, manifest: &str) -> JoinHandle<bool> {
        let (mut command, manifest) = (self.command("apply -f -"), manifest.to_owned());
        thread::spawn(move || {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            child.stdin.take().expect("it is piped").write_all(manifest.as_bytes()).unwrap();
            child.wait().unwrap().success()
        })
    }

    /// Starts a command that goes on until it is dropped.
    pub fn follow(&self, command: &str) -> Process {
        Process::start(&mut self.command(command))
    }

    /// The API without TLS and credentials, at an address of this machine, as long as the process is there.
    pub fn proxy(&self) -> (Process, SocketAddr) {
        proxy(&mut self.command(""))
    }

    /// An object, or a list of them.
    pub fn json(&self, objects: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("get {objects} -o json"))).expect("kubectl prints JSON")
    }

    /// One field of an object, in kubectl's `jsonpath`.
    pub fn field(&self, object: &str, path: &str) -> String {
        self.ok(&format!("get {object} -o jsonpath={{{path}}}"))
    }

    /// Whether there is such an object.
    pub fn exists(&self, object: &str) -> bool {
        let done = self.run(&format!("get {object} -o name"), "");
        assert!(done.code == 0 || done.stderr.contains("NotFound"), "{object}: {}", done.stderr);
        done.code == 0
    }

    fn run_in(&self, mut command: Command, input: &str) -> Done {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that does not read it is not in want of it.
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("kubectl prints text");
        let code = output.status.code().expect("nobody killed it");
        Done { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn command(&self, command: &str) -> Command {
        self.bare(&format!("--namespace {} {command}", self.namespace))
    }

    fn bare(&self, command: &str) -> Command {
        let mut program = clean(&program(), self.cluster.folder());
        program.env("KUBECONFIG", self.cluster.kubeconfig()).args(command.split_whitespace());
        program
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        if !self.cluster.is_embedded() {
            for (manifest, more) in &self.made {
                // What somebody holds on to may never go.
                self.run(&format!("delete --ignore-not-found --timeout 60s -f - {more}"), manifest);
            }
            let delete = format!("delete namespace {} --ignore-not-found --wait=false", self.namespace);
            self.run(&delete, "");
        }
    }
}

/// kubectl without a cluster, for whoever runs one in this folder. None, with a line that says so, where there is none.
pub fn on_path(folder: &Path) -> Option<Command> {
    known_version().map(|_| clean(&program(), folder))
}

/// Has a kubectl serve the API that it is set up for, without TLS and credentials, at an address of this machine.
pub fn proxy(kubectl: &mut Command) -> (Process, SocketAddr) {
    let proxy = Process::start(kubectl.args(["proxy", "--port=0"]));
    let address = until("kubectl serves the API", || {
        let said = proxy.stdout();
        said.lines().find_map(|line| line.strip_prefix("Starting to serve on ")?.parse().ok())
    });
    (proxy, address)
}

/// Only what the story says counts, not what the machine is set up for.
fn clean(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("NO_PROXY", "*");
    command.env("HOME", folder).env("TMPDIR", folder);
    command
}

fn program() -> PathBuf {
    std::env::var_os("KUBEWAKE_KUBECTL").unwrap_or_else(|| OsString::from("kubectl")).into()
}

/// Says so where there is none.
fn known_version() -> Option<u32> {
    let minor = minor_version();
    if minor.is_none() {
        say("SKIPPED: there is no kubectl here (on Debian: apt-get install kubernetes-client)");
    }
    minor
}

fn minor_version() -> Option<u32> {
    let asked = ["version", "--client", "--output=json"];
    let output = clean(&program(), &std::env::temp_dir()).args(asked).output().ok()?;
    let version: Value = serde_json::from_slice(&output.stdout).ok()?;
    let minor = version["clientVersion"]["minor"].as_str()?;
    minor.trim_end_matches('+').parse().ok()
}

/// Says it once, past the test runner, which hides what tests that succeed print.
fn say(line: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap().insert(line.to_owned()) {
        // Where nobody listens, nothing is lost.
        let _ = writeln!(io::stderr(), "{line}");
    }
}
