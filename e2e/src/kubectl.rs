//! `kubectl` as a client, in a namespace of its own.
//!
//! Commands are written as on a command line, but without quoting: a space always separates two arguments.
//! `$KUBEWAKE_KUBECTL` names the program, by default the one in the path. Its version is checked, since Debian
//! still has one that is years old.

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

use crate::{ClusterUnderTest, process::ChildProcess, wait_for};

/// A client of a cluster, with its namespace.
pub struct Kubectl {
    cluster: ClusterUnderTest,
    namespace: String,
    minor: u32,
    /// Manifests to delete on drop, with additional arguments of `delete`.
    created: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Kubectl {
    /// A client of a cluster of its own. None, with a printed note, where kubectl is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with additional arguments of the API server, if one is started.
    pub fn start_with(args: &[&str]) -> Option<Self> {
        reported_minor_version().map(|minor| Self::in_unique_namespace(ClusterUnderTest::start_with(args), minor))
    }

    /// A client of a cluster with nodes that run programs, with these arguments of `kubewake cluster`. None
    /// where kubectl is not installed.
    pub fn with_nodes(args: &[&str]) -> Option<Self> {
        reported_minor_version().map(|minor| Self::in_unique_namespace(ClusterUnderTest::with_nodes(args), minor))
    }

    fn in_unique_namespace(cluster: ClusterUnderTest, minor: u32) -> Self {
        let namespace = cluster.unique_name();
        let kubectl = Self { cluster, namespace, minor, created: Vec::new() };
        kubectl.run_ok(&format!("create namespace {}", kubectl.namespace));
        kubectl
    }

    pub fn cluster(&self) -> &ClusterUnderTest {
        &self.cluster
    }

    /// Starts the cluster again after it has ended.
    pub fn restart(&mut self) {
        self.cluster.restart();
    }

    /// The process of the cluster.
    pub fn process(&mut self) -> &mut ChildProcess {
        self.cluster.process().expect("the cluster is a child process")
    }

    /// The default namespace of commands.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Deletes these objects on drop, however the story ends, if the cluster is shared. Manifests are deleted
    /// in the order of these calls.
    pub fn delete_on_drop(&mut self, manifest: &str, more: &str) {
        self.created.push((manifest.to_owned(), more.to_owned()));
    }

    /// Whether kubectl supports a feature of Kubernetes 1.`minor`. Prints a note if it does not.
    pub fn is_at_least(&self, minor: u32, what: &str) -> bool {
        if self.minor < minor {
            print_once(&format!("SKIPPED: kubectl 1.{} does not support {what}, which needs 1.{minor}", self.minor));
        }
        self.minor >= minor
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn run_ok(&self, command: &str) -> String {
        self.run_ok_with(command, "")
    }

    /// The same with a file on standard input.
    pub fn run_ok_with(&self, command: &str, input: &str) -> String {
        let done = self.run(command, input);
        assert_eq!(done.code, 0, "kubectl {command}\n{}{}", done.stdout, done.stderr);
        done.stdout
    }

    /// The same for a command that reads and then writes: it is repeated while it conflicts with another
    /// writer, such as the controllers of any cluster but a bare API server.
    pub fn ok_despite_conflicts(&self, command: &str, input: &str) -> String {
        wait_for(&format!("kubectl {command} succeeds without a conflict"), || {
            let done = self.run(command, input);
            let is_conflict = done.code != 0 && done.stderr.contains("the object has been modified");
            assert!(done.code == 0 || is_conflict, "kubectl {command}\n{}{}", done.stdout, done.stderr);
            (done.code == 0).then_some(done.stdout)
        })
    }

    /// Runs a command that must succeed, on manifests that name their namespaces.
    pub fn ok_anywhere(&self, command: &str, input: &str) -> String {
        let done = self.run_anywhere(command, input);
        assert_eq!(done.code, 0, "kubectl {command}\n{}{}", done.stdout, done.stderr);
        done.stdout
    }

    /// The same, whether or not it succeeds.
    pub fn run_anywhere(&self, command: &str, input: &str) -> CommandOutput {
        self.run_in(self.command_without_namespace(command), input)
    }

    /// Runs a command that must fail, and returns its error output.
    pub fn run_failing(&self, command: &str) -> String {
        self.run_failing_with(command, "")
    }

    /// The same with a file on standard input.
    pub fn run_failing_with(&self, command: &str, input: &str) -> String {
        let done = self.run(command, input);
        assert_eq!(done.code, 1, "kubectl {command}\n{}{}", done.stdout, done.stderr);
        done.stderr
    }

    /// Runs a command, whether or not it succeeds.
    pub fn run(&self, command: &str, input: &str) -> CommandOutput {
        self.run_in(self.command(command), input)
    }

    /// Edits an object with a shell command, in which `$1` is the file.
    pub fn edit(&self, object: &str, editor: &str) -> CommandOutput {
        let script = self.cluster.folder().join("editor.sh");
        fs::write(&script, editor).unwrap();
        let mut command = self.command(&format!("edit {object}"));
        command.env("KUBE_EDITOR", format!("sh {}", script.display()));
        self.run_in(command, "")
    }

    /// Applies a manifest from another client at the same time; the result tells whether it succeeded.
    pub fn apply_in_background(&self, manifest: &str) -> JoinHandle<bool> {
        let mut command = self.command("apply -f -");
        let manifest = manifest.to_owned();
        thread::spawn(move || {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            child.stdin.take().expect("the stream is piped").write_all(manifest.as_bytes()).unwrap();
            child.wait().unwrap().success()
        })
    }

    /// Starts a command that runs until it is dropped.
    pub fn follow(&self, command: &str) -> ChildProcess {
        ChildProcess::start(&mut self.command(command))
    }

    /// Serves the API without TLS and credentials at an address of this machine, for the lifetime of the
    /// process.
    pub fn proxy(&self) -> (ChildProcess, SocketAddr) {
        proxy(&mut self.command(""))
    }

    /// An object, or a list of objects.
    pub fn json(&self, objects: &str) -> Value {
        serde_json::from_str(&self.run_ok(&format!("get {objects} -o json"))).expect("kubectl prints JSON")
    }

    /// One field of an object, in kubectl's `jsonpath`.
    pub fn field(&self, object: &str, path: &str) -> String {
        self.run_ok(&format!("get {object} -o jsonpath={{{path}}}"))
    }

    pub fn exists(&self, object: &str) -> bool {
        let done = self.run(&format!("get {object} -o name"), "");
        assert!(done.code == 0 || done.stderr.contains("NotFound"), "{object}: {}", done.stderr);
        done.code == 0
    }

    fn run_in(&self, mut command: Command, input: &str) -> CommandOutput {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command may exit without reading its input.
        let _ = child.stdin.take().expect("the stream is piped").write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("kubectl prints text");
        let code = output.status.code().expect("kubectl exits with a code");
        CommandOutput { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn command(&self, command: &str) -> Command {
        self.command_without_namespace(&format!("--namespace {} {command}", self.namespace))
    }

    fn command_without_namespace(&self, command: &str) -> Command {
        let mut program = clean_command(&program(), self.cluster.folder());
        program.env("KUBECONFIG", self.cluster.kubeconfig()).args(command.split_whitespace());
        program
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        if !self.cluster.is_embedded() {
            for (manifest, more) in &self.created {
                // The timeout covers objects that a finalizer keeps.
                self.run(&format!("delete --ignore-not-found --timeout 60s -f - {more}"), manifest);
            }
            let delete = format!("delete namespace {} --ignore-not-found --wait=false", self.namespace);
            self.run(&delete, "");
        }
    }
}

/// kubectl without a cluster, for one that runs in this folder. None, with a printed note, where it is not
/// installed.
pub fn on_path(folder: &Path) -> Option<Command> {
    reported_minor_version().map(|_| clean_command(&program(), folder))
}

/// Starts `kubectl proxy`, which serves the API without TLS and credentials at an address of this machine.
pub fn proxy(kubectl: &mut Command) -> (ChildProcess, SocketAddr) {
    let proxy = ChildProcess::start(kubectl.args(["proxy", "--port=0"]));
    let address = wait_for("kubectl proxy is ready", || {
        let said = proxy.stdout();
        said.lines().find_map(|line| line.strip_prefix("Starting to serve on ")?.parse().ok())
    });
    (proxy, address)
}

/// A command that ignores the environment of the machine.
fn clean_command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("NO_PROXY", "*");
    command.env("HOME", folder).env("TMPDIR", folder);
    command
}

fn program() -> PathBuf {
    std::env::var_os("KUBEWAKE_KUBECTL").unwrap_or_else(|| OsString::from("kubectl")).into()
}

/// The minor version of kubectl. Prints a note where it is not installed.
fn reported_minor_version() -> Option<u32> {
    let minor = minor_version();
    if minor.is_none() {
        print_once("SKIPPED: kubectl is not installed (on Debian: apt-get install kubernetes-client)");
    }
    minor
}

fn minor_version() -> Option<u32> {
    let asked = ["version", "--client", "--output=json"];
    let output = clean_command(&program(), &std::env::temp_dir()).args(asked).output().ok()?;
    let version: Value = serde_json::from_slice(&output.stdout).ok()?;
    let minor = version["clientVersion"]["minor"].as_str()?;
    minor.trim_end_matches('+').parse().ok()
}

/// Prints a line once, bypassing the test runner, which hides the output of tests that pass.
fn print_once(line: &str) {
    static PRINTED_LINES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if PRINTED_LINES.lock().unwrap().insert(line.to_owned()) {
        // A closed standard error is no failure.
        let _ = writeln!(io::stderr(), "{line}");
    }
}
