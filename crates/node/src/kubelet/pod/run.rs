//! One run of a container: from the start of its process to its end.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus,
};
use rustix::process::Signal;
use tokio::{task::JoinHandle, time::Instant};

use super::{
    Worker,
    board::{has_run, keep_last},
    care::Trouble,
    container::Kind,
    orders::Orders,
};
use crate::{
    kubelet::{
        env::Launch,
        logs::{Run as LogRun, RunOutput},
        process::{self, Exit, Process, StartError},
        status::time,
        volumes::within,
    },
    marks::Mark,
};

/// What is left in the pipes when a container has ended is read for so long at most. Only a process that got away could
/// keep them open.
const DRAIN: Duration = Duration::from_secs(1);
/// Lines and bytes of the log that are shown as last words: the kubelet's numbers.
const LAST_WORDS: (u64, usize) = (80, 2048);

/// As much of a message is read: the kubelet's number.
const MESSAGE: u64 = 4096;
/// What a container has after its hook at least: the kubelet's number.
const LEAST: Duration = Duration::from_secs(2);

/// Why the node ends a process, or need not.
#[derive(Debug)]
enum End {
    /// It has ended itself.
    Itself(i32),
    /// The pod stops.
    Ordered,
    /// It has to run anew.
    Anew(Trouble),
}

/// One run.
pub(super) struct Run<'a> {
    pub(super) worker: &'a Worker,
    pub(super) container: &'a Container,
    pub(super) kind: Kind,
    pub(super) launch: Launch,
    pub(super) mark: Mark,
    started: Timestamp,
    /// How often it was started before.
    number: i32,
}

impl<'a> Run<'a> {
    pub(super) fn new(worker: &'a Worker, container: &'a Container, kind: Kind, launch: Launch) -> Self {
        let mark = worker.node.options.mark.container();
        let again = |status: &ContainerStatus| status.restart_count + i32::from(has_run(status));
        let number = worker.board.container(&container.name, again).unwrap_or(0);
        Self { worker, container, kind, launch, mark, started: Timestamp::now(), number }
    }

    /// Starts the process, and returns its exit code when it has ended, whatever the reason.
    pub(super) async fn run(self, orders: &mut Orders) -> i32 {
        let (worker, name) = (self.worker, &self.container.name);
        worker.normal(name, "Created", "Container created");
        let (mut process, log, keeping) = match self.start() {
            Ok(begun) => begun,
            Err(error) => {
                worker.warning(name, "Failed", format!("Error: {error}"));
                self.ended(128, "StartError", error.to_string());
                return 128;
            }
        };
        worker.normal(name, "Started", "Container started");
        let _counting = worker.node.meter.count(&worker.key, name, process.id());
        self.running();
        let code = self.supervise(&mut process, orders).await;
        // What the process started may have left its group.
        worker.node.sweeper.sweep(self.mark.clone()).await;
        keeping.finish(&log).await;
        let reason = if code == 0 { "Completed" } else { "Error" };
        let message = self.message(&log, code);
        if code != 0 && orders.by().is_none() {
            self.name_rivals(&message);
        }
        self.ended(code, reason, message);
        code
    }

    fn start(&self) -> Result<(Process, RunOutput, Keeping), StartError> {
        let worker = self.worker;
        let run = LogRun { uid: &worker.uid, container: &self.container.name, number: self.number };
        let log = worker.node.logs.begin(&run)?;
        let (process, output) = match process::start(&self.launch, &self.mark) {
            Ok(begun) => begun,
            Err(error) => {
                log.end();
                return Err(error);
            }
        };
        let keeping = Keeping(tokio::spawn(log.clone().keep(output)));
        Ok((process, log, keeping))
    }

    fn running(&self) {
        let container = self.container;
        let hook = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
        let unasked = hook.is_none() && container.startup_probe.is_none();
        let ready = unasked && container.readiness_probe.is_none() && self.is_counted();
        let running = ContainerStateRunning { started_at: Some(time(self.started)) };
        self.worker.board.change_container(&container.name, |status| {
            self.begin(status);
            status.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
            status.started = Some(unasked);
            status.ready = ready;
        });
    }

    /// The run before, if there was one, becomes the last.
    fn begin(&self, status: &mut ContainerStatus) {
        if status.container_id.replace(self.id()) != Some(self.id()) {
            keep_last(status);
            status.restart_count = self.number;
        }
    }

    /// Whether it counts for the readiness of the pod while it runs.
    pub(super) fn is_counted(&self) -> bool {
        self.kind != Kind::Init
    }

    fn ended(&self, code: i32, reason: &str, message: String) {
        let ended = ContainerStateTerminated {
            container_id: Some(self.id()),
            exit_code: code,
            reason: Some(reason.to_owned()),
            message: Some(message).filter(|message| !message.is_empty()),
            started_at: Some(time(self.started)),
            finished_at: Some(time(Timestamp::now())),
            signal: None,
        };
        self.worker.board.change_container(&self.container.name, |status| {
            self.begin(status);
            status.state = Some(ContainerState { terminated: Some(ended), ..ContainerState::default() });
            status.started = Some(false);
            status.ready = self.kind == Kind::Init && code == 0;
        });
        self.worker.board.change(|facts| drop(facts.wildcards.remove(&self.container.name)));
    }

    fn id(&self) -> String {
        format!("kubewake://{:016x}", self.mark.number())
    }

    /// Until it has ended, for whatever reason.
    async fn supervise(&self, process: &mut Process, orders: &mut Orders) -> i32 {
        let watched = self.worker.node.wildcards.watch(process.id());
        let end = tokio::select! {
            never = self.watch_addresses(watched) => match never {},
            exit = process.ended() => End::Itself(code(exit)),
            () = orders.stop() => End::Ordered,
            trouble = self.care() => End::Anew(trouble),
            message = self.worker.replaced(self.container) => End::Anew(Trouble { message, grace: None }),
        };
        let name = &self.container.name;
        let by = match end {
            End::Itself(code) => return code,
            End::Ordered => {
                self.worker.normal(name, "Killing", format!("Stopping container {name}"));
                None
            }
            End::Anew(Trouble { message, grace }) => {
                self.worker.normal(name, "Killing", message);
                Some(Instant::now() + grace.unwrap_or_else(|| self.worker.grace()))
            }
        };
        self.stop(process, orders, by).await
    }

    /// Asks the process to end, and makes it when its time is over: at `by`, or when the pod's time is over.
    async fn stop(&self, process: &mut Process, orders: &mut Orders, by: Option<Instant>) -> i32 {
        let lifecycle = self.container.lifecycle.as_ref();
        let mut least = Instant::now();
        if let Some(hook) = lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
            tokio::select! {
                exit = process.ended() => return code(exit),
                () = self.before_end(hook) => {}
                () = over(orders, by) => {}
            }
            least = Instant::now() + LEAST;
        }
        process.signal(stop_signal(lifecycle.and_then(|lifecycle| lifecycle.stop_signal.as_deref())));
        tokio::select! {
            exit = process.ended() => return code(exit),
            () = async { over(orders, by).await; tokio::time::sleep_until(least).await } => {}
        }
        process.kill();
        code(process.ended().await)
    }

    /// What the program wrote for this purpose; else, if it failed, the last that it said.
    ///
    /// The kubelet shows last words only where a container asks for it. A person in front of a laptop always wants to see them.
    fn message(&self, log: &RunOutput, code: i32) -> String {
        let written = self.written().unwrap_or_default();
        match (written.is_empty(), code) {
            (false, _) => written,
            (true, 0) => String::new(),
            (true, _) => log.last_words(LAST_WORDS.0, LAST_WORDS.1),
        }
    }

    fn written(&self) -> io::Result<String> {
        let path = self.container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
        let path = self.launch.root.join(within(Path::new(path)));
        // A container may put anything there, such as a pipe on which a reader would wait for ever.
        if !path.symlink_metadata()?.is_file() {
            return Ok(String::new());
        }
        let file = File::open(path)?;
        let mut bytes = Vec::new();
        file.take(MESSAGE).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A process of which nobody knows how it ended has not ended well.
fn code(exit: io::Result<Exit>) -> i32 {
    exit.map_or(255, |exit| exit.code)
}

/// Waits until the time is over, which may be moved to an earlier moment.
async fn over(orders: &mut Orders, by: Option<Instant>) {
    while let Some(end) = [by, orders.by()].into_iter().flatten().min() {
        tokio::select! {
            () = tokio::time::sleep_until(end) => return,
            () = orders.changed() => {}
        }
    }
}

/// What asks a program to end, by the name that a container gives it.
fn stop_signal(name: Option<&str>) -> Signal {
    match name {
        Some("SIGABRT") => Signal::ABORT,
        Some("SIGALRM") => Signal::ALARM,
        Some("SIGHUP") => Signal::HUP,
        Some("SIGINT") => Signal::INT,
        Some("SIGKILL") => Signal::KILL,
        Some("SIGQUIT") => Signal::QUIT,
        Some("SIGUSR1") => Signal::USR1,
        Some("SIGUSR2") => Signal::USR2,
        Some("SIGWINCH") => Signal::WINCH,
        _ => Signal::TERM,
    }
}

/// Who keeps the output. Dropped, it stops.
struct Keeping(JoinHandle<()>);

impl Keeping {
    async fn finish(mut self, log: &RunOutput) {
        let _ = tokio::time::timeout(DRAIN, &mut self.0).await;
        log.end();
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.abort();
    }
}
