//! One run of a container, from the start of its process to its end.

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
    PodWorker,
    container_lifecycle::ContainerKind,
    probes::RestartReason,
    status_cell::{has_run, move_to_last_state},
    stop_signal::StopSignal,
};
use crate::{
    kubelet::{
        env::ProcessSpec,
        logs::{ContainerLogKey, RunOutput},
        process::{self, ContainerProcess, ProcessExit, ProcessStartError},
        status::api_time,
        volumes::relative_to_root,
    },
    process_tags::ContainerTag,
};

/// The time limit for reading the rest of the output after a container has ended. Only an escaped process can
/// keep the pipes open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The lines and bytes of the log in a termination message: the kubelet's values.
const LOG_TAIL_LIMITS: (u64, usize) = (80, 2048);

/// The limit of a termination message file: the kubelet's value.
const MAX_TERMINATION_MESSAGE_BYTES: u64 = 4096;
/// The least grace period after a pre-stop hook: the kubelet's value.
const MIN_GRACE_AFTER_HOOK: Duration = Duration::from_secs(2);

/// The reason to terminate a process, if it has not exited by itself.
#[derive(Debug)]
enum RunEnd {
    Exited(i32),
    StopRequested,
    /// The container must be restarted.
    RestartNeeded(RestartReason),
}

pub(super) struct ContainerRun<'a> {
    pub(super) worker: &'a PodWorker,
    pub(super) container: &'a Container,
    pub(super) kind: ContainerKind,
    pub(super) process_spec: ProcessSpec,
    pub(super) tag: ContainerTag,
    /// The id of the run.
    id: String,
    started: Timestamp,
    /// The number of earlier starts.
    restart_count: i32,
}

impl<'a> ContainerRun<'a> {
    pub(super) fn new(
        worker: &'a PodWorker,
        container: &'a Container,
        kind: ContainerKind,
        process_spec: ProcessSpec,
    ) -> Self {
        let tag = worker.node.options.tag.new_container_tag();
        let again = |status: &ContainerStatus| status.restart_count + i32::from(has_run(status));
        let restart_count = worker.status.container(&container.name, again).unwrap_or(0);
        let id = container_id(&tag);
        Self { worker, container, kind, process_spec, tag, id, started: Timestamp::now(), restart_count }
    }

    /// Starts the process and returns its exit code when it has ended for any reason.
    pub(super) async fn run(mut self, orders: &mut StopSignal) -> i32 {
        let worker = self.worker;
        let name = &self.container.name;
        worker.record_normal(name, "Created", "Container created");
        let (mut process, log, keeping) = match self.spawn_process() {
            Ok(begun) => begun,
            Err(error) => {
                worker.record_warning(name, "Failed", format!("Error: {error}"));
                self.record_terminated(128, "StartError", error.to_string());
                return 128;
            }
        };
        worker.record_normal(name, "Started", "Container started");
        let _counting = worker.node.meter.register(&worker.key, name, process.id());
        self.record_running();
        let code = self.supervise(&mut process, orders).await;
        // Processes that left the group are found by their tag.
        worker.node.sweeper.sweep(self.tag.clone()).await;
        keeping.finish(&log).await;
        let reason = if code == 0 { "Completed" } else { "Error" };
        let message = self.termination_message(&log, code);
        if code != 0 && orders.stop_deadline().is_none() {
            self.report_port_conflicts(&message);
        }
        self.record_terminated(code, reason, message);
        code
    }

    fn spawn_process(&mut self) -> Result<(ContainerProcess, RunOutput, OutputTask), ProcessStartError> {
        let worker = self.worker;
        let container = &self.container.name;
        let run = ContainerLogKey { pod: worker.log_key(), container, id: &self.id, number: self.restart_count };
        let log = worker.node.logs.begin(&run)?;
        // As in a kubelet, the log that exists already counts if the status was lost.
        self.restart_count = log.number();
        let (process, output) = match process::start_process(&self.process_spec, &self.tag) {
            Ok(begun) => begun,
            Err(error) => {
                log.finish();
                return Err(error);
            }
        };
        let keeping = OutputTask(tokio::spawn(log.clone().store_output(output)));
        Ok((process, log, keeping))
    }

    fn record_running(&self) {
        let container = self.container;
        let hook = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
        let unasked = hook.is_none() && container.startup_probe.is_none();
        let ready = unasked && container.readiness_probe.is_none() && self.counts_for_readiness();
        let running = ContainerStateRunning { started_at: Some(api_time(self.started)) };
        self.worker.status.update_container(&container.name, |status| {
            self.reset_status(status);
            status.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
            status.started = Some(unasked);
            status.ready = ready;
        });
    }

    /// Moves the current state to the last state, if there was a run.
    fn reset_status(&self, status: &mut ContainerStatus) {
        if status.container_id.replace(self.container_id()) != Some(self.container_id()) {
            move_to_last_state(status);
            status.restart_count = self.restart_count;
        }
    }

    /// Whether the container counts for the readiness of the pod while it runs.
    pub(super) fn counts_for_readiness(&self) -> bool {
        self.kind != ContainerKind::Init
    }

    fn record_terminated(&self, code: i32, reason: &str, message: String) {
        let ended = ContainerStateTerminated {
            container_id: Some(self.container_id()),
            exit_code: code,
            reason: Some(reason.to_owned()),
            message: Some(message).filter(|message| !message.is_empty()),
            started_at: Some(api_time(self.started)),
            finished_at: Some(api_time(Timestamp::now())),
            signal: None,
        };
        self.worker.status.update_container(&self.container.name, |status| {
            self.reset_status(status);
            status.state = Some(ContainerState { terminated: Some(ended), ..ContainerState::default() });
            status.started = Some(false);
            status.ready = self.kind == ContainerKind::Init && code == 0;
        });
        self.worker.status.update(|facts| drop(facts.wildcard_binds.remove(&self.container.name)));
    }

    fn container_id(&self) -> String {
        format!("kubewake://{}", self.id)
    }

    /// Supervises the process until it has ended, and returns its exit code.
    async fn supervise(&self, process: &mut ContainerProcess, orders: &mut StopSignal) -> i32 {
        let watched = self.worker.node.wildcards.watch(process.id());
        let end = tokio::select! {
            never = self.watch_wildcard_binds(watched) => match never {},
            exit = process.wait_for_exit() => RunEnd::Exited(exit_code(exit)),
            () = orders.wait_for_stop() => RunEnd::StopRequested,
            trouble = self.run_probes() => RunEnd::RestartNeeded(trouble),
            message = self.worker.wait_for_new_image(self.container) => RunEnd::RestartNeeded(RestartReason { message, grace: None }),
        };
        let name = &self.container.name;
        let by = match end {
            RunEnd::Exited(code) => return code,
            RunEnd::StopRequested => {
                self.worker.record_normal(name, "Killing", format!("Stopping container {name}"));
                None
            }
            RunEnd::RestartNeeded(RestartReason { message, grace }) => {
                self.worker.record_normal(name, "Killing", message);
                Some(Instant::now() + grace.unwrap_or_else(|| self.worker.grace_period()))
            }
        };
        self.terminate_process(process, orders, by).await
    }

    /// Terminates the process and kills it at `by`, or at the deadline of the pod.
    async fn terminate_process(
        &self,
        process: &mut ContainerProcess,
        orders: &mut StopSignal,
        by: Option<Instant>,
    ) -> i32 {
        let lifecycle = self.container.lifecycle.as_ref();
        let mut least = Instant::now();
        if let Some(hook) = lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
            tokio::select! {
                exit = process.wait_for_exit() => return exit_code(exit),
                () = self.run_pre_stop_hook(hook) => {}
                () = wait_for_deadline(orders, by) => {}
            }
            least = Instant::now() + MIN_GRACE_AFTER_HOOK;
        }
        process.send_signal(stop_signal(lifecycle.and_then(|lifecycle| lifecycle.stop_signal.as_deref())));
        tokio::select! {
            exit = process.wait_for_exit() => return exit_code(exit),
            () = async { wait_for_deadline(orders, by).await; tokio::time::sleep_until(least).await } => {}
        }
        process.kill();
        exit_code(process.wait_for_exit().await)
    }

    /// The content of the termination message file; without one, after a failure, the tail of the log.
    ///
    /// The kubelet uses the log only with `FallbackToLogsOnError`. For users of a local cluster it is always
    /// useful.
    fn termination_message(&self, log: &RunOutput, code: i32) -> String {
        let written = self.read_termination_message_file().unwrap_or_default();
        match (written.is_empty(), code) {
            (false, _) => written,
            (true, 0) => String::new(),
            (true, _) => log.tail(LOG_TAIL_LIMITS.0, LOG_TAIL_LIMITS.1),
        }
    }

    fn read_termination_message_file(&self) -> io::Result<String> {
        let path = self.container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
        let path = self.process_spec.root.join(relative_to_root(Path::new(path)));
        // The container controls the path: a reader of a pipe would wait for ever.
        if !path.symlink_metadata()?.is_file() {
            return Ok(String::new());
        }
        let file = File::open(path)?;
        let mut bytes = Vec::new();
        file.take(MAX_TERMINATION_MESSAGE_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// An id for a run with this tag, as long as those of container runtimes: programs that read the names of log
/// files expect 64 hexadecimal digits.
fn container_id(tag: &ContainerTag) -> String {
    format!("{:016x}{:016x}{:032x}", tag.number(), fastrand::u64(..), fastrand::u128(..))
}

/// An unknown exit status counts as a failure.
fn exit_code(exit: io::Result<ProcessExit>) -> i32 {
    exit.map_or(255, |exit| exit.code)
}

/// Waits for the deadline, which may be moved forward.
async fn wait_for_deadline(orders: &mut StopSignal, by: Option<Instant>) {
    while let Some(end) = [by, orders.stop_deadline()].into_iter().flatten().min() {
        tokio::select! {
            () = tokio::time::sleep_until(end) => return,
            () = orders.wait_for_change() => {}
        }
    }
}

/// The signal to terminate a container, by the name in its spec.
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

/// The task that stores the output. Aborted on drop.
struct OutputTask(JoinHandle<()>);

impl OutputTask {
    async fn finish(mut self, log: &RunOutput) {
        let _ = tokio::time::timeout(OUTPUT_DRAIN_TIMEOUT, &mut self.0).await;
        log.finish();
    }
}

impl Drop for OutputTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
