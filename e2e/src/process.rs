//! Processes under test.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use crate::wait::wait_for;

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").to_owned()
}

/// The `kubewake` binary: `$KUBEWAKE_BIN`, or the one that `cargo build` makes.
pub fn kubewake() -> Command {
    program(kubewake_path(), "kubewake")
}

/// The binary of an example, which is built beside `kubewake`.
pub fn example(name: &str) -> Command {
    program(kubewake_path().with_file_name(name), &format!("kubewake-example-{name}"))
}

fn kubewake_path() -> PathBuf {
    let program = std::env::var_os("KUBEWAKE_BIN").map(PathBuf::from);
    program.unwrap_or_else(|| workspace().join("target/debug/kubewake"))
}

fn program(path: PathBuf, package: &str) -> Command {
    assert!(path.exists(), "{} does not exist: run `cargo build -p {package}`", path.display());
    Command::new(path)
}

/// A running program. It is killed when this is dropped.
pub struct ChildProcess {
    child: Child,
    stdout: CapturedStream,
    stderr: CapturedStream,
}

/// The output of a stream so far.
struct CapturedStream {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl CapturedStream {
    fn capture(stream: impl Read + Send + 'static) -> Self {
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

    /// Waits for the rest of the output of a process that has exited.
    fn finish(&mut self) {
        self.reader.take().into_iter().for_each(|reader| reader.join().unwrap());
    }
}

impl ChildProcess {
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
        let stdout = CapturedStream::capture(child.stdout.take().expect("the stream is piped"));
        let stderr = CapturedStream::capture(child.stderr.take().expect("the stream is piped"));
        Self { child, stdout, stderr }
    }

    /// Waits for the line that reports readiness, and returns it.
    pub fn wait_until_ready(&mut self) -> String {
        wait_for("the process prints `ready`", || {
            let stdout = self.stdout.text();
            if let Some(line) = stdout.lines().find(|line| line.starts_with("ready") && stdout.ends_with('\n')) {
                return Some(line.to_owned());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the process exited before it was ready ({status}):\n{}{}", stdout, self.stderr.text());
            }
            None
        })
    }

    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Sends a signal by name: `TERM`, `HUP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(status.unwrap().success(), "failed to send SIG{name}");
    }

    /// Waits for the exit of the process, and for the rest of its output.
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let status = wait_for("the process exits", || self.child.try_wait().unwrap());
        self.stdout.finish();
        self.stderr.finish();
        status
    }

    /// Waits for the exit of the process, and returns its whole output.
    pub fn output(mut self) -> Output {
        let status = self.wait_for_exit();
        Output { status, stdout: self.stdout().into(), stderr: self.stderr().into() }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Peak resident memory in MiB.
    pub fn peak_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process is running");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel reports VmHWM");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- output of process {:?}:\n{}{}", self.child.id(), self.stdout.text(), self.stderr.text());
        }
    }
}
