//! `kubewake up` as a user runs it who has nothing else on the machine.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    http,
    kubectl::on_path,
    process::{ChildProcess, kubewake},
    traces::{CallerVisibility, ExpectedTrace, SpanSet, TraceTree},
    wait_for_ok, wait_until,
};

/// A user's home directory, shared by several commands.
pub struct HomeDir(TempDir);

pub struct UpProcess {
    process: ChildProcess,
    home: PathBuf,
    /// The output at the time it became ready.
    screen: String,
}

impl Default for HomeDir {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }
}

impl HomeDir {
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A `kubewake` command in this home.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = kubewake();
        command.args(args);
        self.in_home(command)
    }

    /// A shell command line in this home.
    pub fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        self.in_home(shell)
    }

    fn in_home(&self, mut command: Command) -> Command {
        command.current_dir(self.path()).env("HOME", self.path()).env("TMPDIR", self.path());
        // The environment of the machine must not take effect.
        for name in ["KUBECONFIG", "XDG_STATE_HOME", "RUST_LOG", "KUBEWAKE_VIEWER"] {
            command.env_remove(name);
        }
        // No story opens a real browser: programs in the folder `bin` come first.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("NO_PROXY", "*").env("PATH", format!("{}:{path}", self.path().join("bin").display()));
        command
    }

    /// Starts it with these arguments, and does not wait.
    pub fn spawn(&self, args: &[&str]) -> ChildProcess {
        ChildProcess::start(&mut self.command(&[&["up"], args].concat()))
    }

    /// Starts it on free ports, with additional arguments, and waits until it is ready.
    pub fn start(&self, args: &[&str]) -> UpProcess {
        let any = "127.0.0.1:0";
        self.start_with(&[&["--listen", any, "--otlp", any, "--otlp-http", any, "--api", any], args].concat())
    }

    /// Starts it with exactly these arguments, and waits until it is ready.
    pub fn start_with(&self, args: &[&str]) -> UpProcess {
        UpProcess::wait_until_ready(self.spawn(args), self.path())
    }

    /// How many processes of its pods are running.
    pub fn pods(&self) -> usize {
        self.processes_with("").len()
    }

    /// Ids of the processes of its pods that have this word among their arguments.
    pub fn processes_with(&self, word: &str) -> Vec<String> {
        let folder = self.path().to_string_lossy().into_owned();
        let is_ours = |variable: &str| variable.starts_with("KUBEWAKE_ROOT=") && variable.contains(&folder);
        let read = |path: PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let ids = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let arguments = read(entry.path().join("cmdline"));
            arguments.split('\0').any(|argument| word.is_empty() || argument == word)
                && read(entry.path().join("environ")).split('\0').any(is_ours)
        });
        ids.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Waits until no process and no file of a run is left.
    pub fn wait_until_cleaned_up(&self) {
        wait_until("all processes have exited and all files are removed", || {
            let files = fs::read_dir(self.path()).unwrap().flatten();
            let is_run = |name: &str| name.starts_with("kubewake-");
            self.pods() == 0 && files.filter(|file| is_run(&file.file_name().to_string_lossy())).count() == 0
        });
    }
}

impl UpProcess {
    /// Waits until a started process is ready.
    pub fn wait_until_ready(mut process: ChildProcess, home: &Path) -> Self {
        // Each part may take as long as any other wait of a story.
        for part in ["cluster", "operator", "webhook"] {
            wait_until(&format!("{part} has started"), || {
                assert!(process.is_running(), "the process exited:\n{}{}", process.stdout(), process.stderr());
                process.stderr().contains(&format!("✓ {part}"))
            });
        }
        process.wait_until_ready();
        let screen = process.stdout();
        Self { process, home: home.to_owned(), screen }
    }

    pub fn process(&mut self) -> &mut ChildProcess {
        &mut self.process
    }

    pub fn screen(&self) -> &str {
        &self.screen
    }

    /// The text after this word in the output.
    pub fn line(&self, name: &str) -> &str {
        let line = self.screen.lines().find_map(|line| line.trim_start().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{}", self.screen)).trim()
    }

    /// Address of the viewer's page.
    pub fn page(&self) -> SocketAddr {
        address(self.line("page"))
    }

    /// Address of OTLP over HTTP.
    pub fn otlp_http(&self) -> SocketAddr {
        address(self.line("OTLP HTTP").rsplit('=').next().unwrap())
    }

    /// The kubeconfig in the output.
    pub fn kubeconfig(&self) -> &str {
        self.line("kubectl").strip_prefix("export KUBECONFIG=").unwrap()
    }

    /// Runs kubectl, which must succeed. None where it is not installed.
    pub fn kubectl(&self, args: &[&str]) -> Option<String> {
        let mut kubectl = on_path(&self.home)?;
        let output = kubectl.env("KUBECONFIG", self.kubeconfig()).args(args).output().unwrap();
        assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    }

    pub fn get(&self, path: &str) -> Value {
        let answer = http::get(self.page(), path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// The spans of a trace in the viewer, by the link to its page.
    pub fn spans(&self, link: &str) -> SpanSet {
        SpanSet::of_request(&self.get(&format!("/api/v1/traces/{}?format=otlp", trace_in(link))))
    }

    /// Waits until a trace is as expected.
    pub fn wait_until_matches(&self, link: &str, expected: &str) {
        let expected = ExpectedTrace::parse(expected, CallerVisibility::Trusted);
        wait_for_ok(|| {
            let tree = TraceTree::from_trace(&self.spans(link), trace_in(link), CallerVisibility::Trusted);
            expected.differences(&tree).map_or(Ok(()), Err)
        });
    }

    /// Runs a command, which must succeed, and returns its output.
    pub fn run_command(&self, home: &HomeDir, args: &[&str]) -> String {
        let Output { status, stdout, stderr } = home.command(args).output().unwrap();
        assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    /// Stops it gracefully by this signal.
    pub fn stop_with(mut self, signal: &str) {
        self.process.signal(signal);
        let status = self.process.wait_for_exit();
        assert!(status.success(), "{status}: {}", self.process.stderr());
    }
}

/// The trace id in a link.
pub fn trace_in(link: &str) -> &str {
    link.rsplit('/').next().unwrap()
}

/// The link to a trace in the output of a command.
pub fn link_in(text: &str) -> &str {
    let line = text.split_whitespace().find(|word| word.starts_with("http://") && word.contains("/trace/"));
    line.unwrap_or_else(|| panic!("no link to a trace in\n{text}"))
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://").unwrap().parse().unwrap()
}
