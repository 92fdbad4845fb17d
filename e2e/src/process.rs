//! Programs that run while a test does.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use crate::wait::until;

/// The workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is around this crate").to_owned()
}

/// The product: `$KUBEWAKE_BIN`, or what `cargo build` makes.
pub fn kubewake() -> Command {
    program(kubewake_path(), "kubewake")
}

/// An example's program, which is built beside the product.
pub fn example(name: &str) -> Command {
    program(kubewake_path().with_file_name(name), &format!("kubewake-example-{name}"))
}

fn kubewake_path() -> PathBuf {
    let program = std::env::var_os("KUBEWAKE_BIN").map(PathBuf::from);
    program.unwrap_or_else(|| workspace().join("target/debug/kubewake"))
}

fn program(path: PathBuf, package: &str) -> Command {
    assert!(path.exists(), "{} is not there: build it with `cargo build -p {package}`", path.display());
    Command::new(path)
}

/// A running program. It is killed when this is dropped.
pub struct Process {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

/// What a stream said so far.
struct Lines {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Lines {
    fn follow(stream: impl Read + Send + 'static) -> Self {
        let text = Arc::<Mutex<String>>::default();
        let all = text.clone();
        let reader = thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                all.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Waits for the last words of a process that has ended.
    fn finish(&mut self) {
        self.reader.take().into_iter().for_each(|reader| reader.join().unwrap());
    }
}

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdout = Lines::follow(child.stdout.take().expect("it is piped"));
        let stderr = Lines::follow(child.stderr.take().expect("it is piped"));
        Self { child, stdout, stderr }
    }

    /// Waits for the line that says that it serves, and gives it.
    pub fn ready(&mut self) -> String {
        until("it prints `ready`", || {
            let stdout = self.stdout.text();
            if let Some(line) = stdout.lines().find(|line| line.starts_with("ready") && stdout.ends_with('\n')) {
                return Some(line.to_owned());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("it ended with {status} instead of serving:\n{}{}", stdout, self.stderr.text());
            }
            None
        })
    }

    /// What it printed so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it logged so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Sends it a signal by name: `TERM`, `HUP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(status.unwrap().success(), "cannot send SIG{name}");
    }

    /// Waits for its end, and for its last words.
    pub fn wait(&mut self) -> ExitStatus {
        let status = until("the process ends", || self.child.try_wait().unwrap());
        self.stdout.finish();
        self.stderr.finish();
        status
    }

    /// Waits for its end, and gives everything that it said.
    pub fn output(mut self) -> Output {
        let status = self.wait();
        Output { status, stdout: self.stdout().into(), stderr: self.stderr().into() }
    }

    /// Whether it runs still.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The most memory that it ever had, in MiB.
    pub fn peak_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel tells");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either it is gone already or it goes now.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- {:?} said:\n{}{}", self.child.id(), self.stdout.text(), self.stderr.text());
        }
    }
}
