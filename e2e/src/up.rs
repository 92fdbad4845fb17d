//! `kubewake up` as somebody runs it who has nothing else on the machine.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    eventually, http,
    kubectl::on_path,
    process::{Process, kubewake},
    traces::{Callers, Expected, Spans, Tree},
    until_ok,
};

/// A person's home, in which several may run.
pub struct Home(TempDir);

/// A running `up`.
pub struct Up {
    process: Process,
    home: PathBuf,
    /// What it said when it was ready.
    screen: String,
}

impl Default for Home {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }
}

impl Home {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A command of ours that is typed here.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = kubewake();
        command.args(args);
        self.typed(command)
    }

    /// A line that is typed here, whatever it runs.
    pub fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        self.typed(shell)
    }

    fn typed(&self, mut command: Command) -> Command {
        command.current_dir(self.path()).env("HOME", self.path()).env("TMPDIR", self.path());
        // Only what the story says counts.
        for name in ["KUBECONFIG", "XDG_STATE_HOME", "RUST_LOG", "KUBEWAKE_VIEWER"] {
            command.env_remove(name);
        }
        // No story opens anybody's browser: what is in the folder `bin` is found first.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("NO_PROXY", "*").env("PATH", format!("{}:{path}", self.path().join("bin").display()));
        command
    }

    /// Starts it with these arguments, and does not wait.
    pub fn begin(&self, args: &[&str]) -> Process {
        Process::start(&mut self.command(&[&["up"], args].concat()))
    }

    /// Starts it on any ports, with these arguments beside, until it is ready.
    pub fn up(&self, args: &[&str]) -> Up {
        let any = "127.0.0.1:0";
        self.up_with(&[&["--listen", any, "--otlp", any, "--otlp-http", any, "--api", any], args].concat())
    }

    /// Starts it with exactly these arguments, until it is ready.
    pub fn up_with(&self, args: &[&str]) -> Up {
        Up::of(self.begin(args), self.path())
    }

    /// How many processes of pods that were started from here run.
    pub fn pods(&self) -> usize {
        self.processes_with("").len()
    }

    /// Those that have this word among their arguments.
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
    pub fn until_nothing_is_left(&self) {
        eventually("no process and no file is left", || {
            let files = fs::read_dir(self.path()).unwrap().flatten();
            let is_run = |name: &str| name.starts_with("kubewake-");
            self.pods() == 0 && files.filter(|file| is_run(&file.file_name().to_string_lossy())).count() == 0
        });
    }
}

impl Up {
    /// One that is being started, once it is ready.
    pub fn of(mut process: Process, home: &Path) -> Self {
        // Each part has as much time as a story gives to anything.
        for part in ["cluster", "operator", "webhook"] {
            eventually(&format!("{part} is there"), || {
                assert!(process.runs(), "it ended:\n{}{}", process.stdout(), process.stderr());
                process.stderr().contains(&format!("✓ {part}"))
            });
        }
        process.ready();
        let screen = process.stdout();
        Self { process, home: home.to_owned(), screen }
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What it said when it was ready.
    pub fn screen(&self) -> &str {
        &self.screen
    }

    /// What stands behind this word in what it said.
    pub fn line(&self, name: &str) -> &str {
        let line = self.screen.lines().find_map(|line| line.trim_start().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{}", self.screen)).trim()
    }

    /// Where the page is.
    pub fn page(&self) -> SocketAddr {
        address(self.line("page"))
    }

    /// Where OTLP over HTTP is taken.
    pub fn otlp_http(&self) -> SocketAddr {
        address(self.line("OTLP HTTP").rsplit('=').next().unwrap())
    }

    /// The kubeconfig that it names.
    pub fn kubeconfig(&self) -> &str {
        self.line("kubectl").strip_prefix("export KUBECONFIG=").unwrap()
    }

    /// Runs kubectl, which must end well. None where there is none.
    pub fn kubectl(&self, args: &[&str]) -> Option<String> {
        let mut kubectl = on_path(&self.home)?;
        let output = kubectl.env("KUBECONFIG", self.kubeconfig()).args(args).output().unwrap();
        assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    }

    /// What the viewer answers.
    pub fn get(&self, path: &str) -> Value {
        let answer = http::get(self.page(), path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// A trace as the viewer has it, by the link of its page.
    pub fn spans(&self, link: &str) -> Spans {
        Spans::of_request(&self.get(&format!("/api/v1/traces/{}?format=otlp", trace_in(link))))
    }

    /// Waits until a trace is as this text says.
    pub fn becomes(&self, link: &str, expected: &str) {
        let expected = Expected::read(expected, Callers::Trusted);
        until_ok(|| {
            let tree = Tree::of(&self.spans(link), trace_in(link), Callers::Trusted);
            expected.differences(&tree).map_or(Ok(()), Err)
        });
    }

    /// Types a command in another terminal that must end well, and gives what it says.
    pub fn types(&self, home: &Home, args: &[&str]) -> String {
        let Output { status, stdout, stderr } = home.command(args).output().unwrap();
        assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    /// Ends it by this signal, in good order.
    pub fn end(mut self, signal: &str) {
        self.process.signal(signal);
        let status = self.process.wait();
        assert!(status.success(), "{status}: {}", self.process.stderr());
    }
}

/// The trace that a link leads to.
pub fn trace_in(link: &str) -> &str {
    link.rsplit('/').next().unwrap()
}

/// The link of a trace in what a command said.
pub fn link_in(text: &str) -> &str {
    let line = text.split_whitespace().find(|word| word.starts_with("http://") && word.contains("/trace/"));
    line.unwrap_or_else(|| panic!("no link in\n{text}"))
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://").unwrap().parse().unwrap()
}
