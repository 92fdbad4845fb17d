use std::{os::unix::fs::PermissionsExt, sync::atomic::AtomicBool, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
};
use kubewake_apiserver::kubelet_client::{LogOptions, LogSince};

use self::line::{LineSplitter, OutputStream};
use super::*;

mod entries;
mod process;
mod rotated;
mod runs;

const AT: &str = "2026-01-02T03:04:05.06Z";
const UID: &str = "0d5a3c1e-1111-4222-8333-444455556666";
const POD: PodLogKey<'_> = PodLogKey { namespace: "shop", pod: "web", uid: UID };

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The logs of a container with controlled output.
struct Fixture {
    dir: tempfile::TempDir,
    logs: ContainerLogStore,
}

impl Fixture {
    fn new() -> Self {
        Self::with_rules(LogRotation::default())
    }

    fn with_rules(rules: LogRotation) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { logs: ContainerLogStore::create(dir.path(), rules).unwrap(), dir }
    }

    /// The same logs in a node that starts again.
    fn restarted(self) -> Self {
        let logs = ContainerLogStore::create(self.dir.path(), self.logs.0.rules).unwrap();
        Self { logs, dir: self.dir }
    }

    /// Begins the run with this restart count; its id is `run-NUMBER`.
    fn begin(&self, number: i32) -> RunOutput {
        let id = format!("run{number}");
        self.logs.begin(&ContainerLogKey { pod: POD, container: "main", id: &id, number }).unwrap()
    }

    fn container_dir(&self) -> PathBuf {
        self.dir.path().join(format!("var/log/pods/shop_web_{UID}/main"))
    }

    /// The names of the container's log files, in order.
    fn files(&self) -> Vec<String> {
        names(&self.container_dir())
    }

    fn links(&self) -> Vec<String> {
        names(&self.dir.path().join("var/log/containers"))
    }

    fn rotate_at(&self, now: &str) {
        self.logs.rotate_all(time(now), &AtomicBool::new(false));
    }

    async fn open(&self, options: &LogOptions, status: &ContainerStatus) -> Result<String, String> {
        match self.logs.open(&request(options), Some(status)).await {
            Ok(pieces) => Ok(String::from_utf8(pieces.collect::<Vec<Bytes>>().await.concat()).unwrap()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads the log of the run with this restart count.
    async fn read(&self, number: i32, options: &LogOptions) -> String {
        self.open(options, &running(number)).await.unwrap()
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn request(options: &LogOptions) -> LogRequest {
    LogRequest {
        node: "node-0".into(),
        namespace: "shop".into(),
        pod: "web".into(),
        uid: UID.into(),
        container: "main".into(),
        options: options.clone(),
    }
}

fn all() -> LogOptions {
    LogOptions::default()
}

fn tail(lines: u64) -> LogOptions {
    LogOptions { tail_lines: Some(lines), ..all() }
}

fn previous() -> LogOptions {
    LogOptions { previous: true, ..all() }
}

fn run_id(number: i32) -> Option<String> {
    Some(format!("kubewake://run{number}"))
}

fn terminated_state(number: i32) -> ContainerState {
    let ended = ContainerStateTerminated { container_id: run_id(number), ..ContainerStateTerminated::default() };
    ContainerState { terminated: Some(ended), ..ContainerState::default() }
}

fn waiting_state(reason: &str) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: None };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

/// The run with this restart count runs, and the one before it has ended.
fn running(number: i32) -> ContainerStatus {
    let running = ContainerState { running: Some(ContainerStateRunning::default()), ..ContainerState::default() };
    ContainerStatus {
        container_id: run_id(number),
        state: Some(running),
        last_state: (number > 0).then(|| terminated_state(number - 1)),
        ..ContainerStatus::default()
    }
}

/// Appends lines of standard error at this time.
fn say(output: &RunOutput, at: &str, lines: &[&str]) {
    let mut splitter = LineSplitter::new(OutputStream::Stderr);
    for line in lines {
        let mut out = Vec::new();
        splitter.push(format!("{line}\n").as_bytes(), time(at), &mut out);
        output.append(&out);
    }
}
