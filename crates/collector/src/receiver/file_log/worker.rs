//! The thread that reads: files, lines, requests and receipts, in one loop.
//!
//! *Guarantees*: it holds no pipeline while it waits. Positions move only with receipts, and are stored when it ends.

mod outputs;
mod progress;
mod reading;

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use kubewake_config::ComponentId;
use kubewake_log_files::{LogEvent, LogFiles, LogFilesHandle, ReaderId, StreamId};
use kubewake_otlp::Signal;

use super::{
    delivery_ledger::DeliveryLedger,
    log_reader::LogReader,
    output_table::OutputTable,
    position_stores::{self, MemoryPositions, PositionPlace},
    read_settings::ReadSettings,
    worker_control::{WorkerControl, WorkerPhase, WorkerRequest, WorkerTask},
};
use crate::core::{LogFileStats, Pipeline, PipelineSet};

/// How often the pipelines are looked at while nothing is written.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two rounds through the logs, unless one of them has more than it could read at once: so many lines
/// that are written one by one become one request.
const ROUND_INTERVAL: Duration = Duration::from_millis(50);

/// The turns of readers between two looks at everything else.
const TURNS_PER_ROUND: usize = 256;

/// How long until log files are tried again that cannot be read at all.
const OPEN_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// How often logs that are gone are forgotten. All logs are found in much less time.
const FORGET_INTERVAL: Duration = Duration::from_secs(30);

pub(super) struct FileLogWorker {
    id: ComponentId,
    control: Arc<WorkerControl>,
    read: Arc<ReadSettings>,
    place: PositionPlace,
    memory: MemoryPositions,
    /// `None` when reading has stopped.
    pipelines: Option<Arc<PipelineSet>>,
    runtime: tokio::runtime::Handle,
    outputs: OutputTable,
    ledger: DeliveryLedger,
    requests: HashMap<u64, SubmittedRequest>,
    next_request: u64,
    open: Option<OpenLogs>,
    open_retry_at: Option<Instant>,
    stats: Arc<LogFileStats>,
    /// When the progress of outputs is published again.
    progress_at: Instant,
}

/// A request whose receipts are awaited.
struct SubmittedRequest {
    stream: StreamId,
    bytes: u64,
    /// The time of its last record, in nanoseconds since 1970.
    last_time: u64,
    /// Outputs whose receipts are missing.
    outputs: usize,
}

/// The log files, with a reader for each position that outputs share.
struct OpenLogs {
    files: LogFiles,
    handle: LogFilesHandle,
    readers: HashMap<ReaderId, LogReader>,
    by_stream: HashMap<StreamId, Vec<ReaderId>>,
    /// Readers all of whose outputs have a full window.
    paused: HashSet<ReaderId>,
    /// Logs that have ended; their readers are closed when they have read everything.
    ended: HashSet<StreamId>,
    buffer: Vec<u8>,
    /// When to look for logs that are gone.
    forget_at: Instant,
}

impl FileLogWorker {
    pub(super) fn new(id: ComponentId, control: Arc<WorkerControl>, task: WorkerTask) -> Self {
        let WorkerTask { read, place, pipelines, runtime, stats } = task;
        Self {
            id,
            control,
            read,
            place,
            memory: MemoryPositions::default(),
            pipelines: Some(pipelines),
            runtime,
            outputs: OutputTable::default(),
            ledger: DeliveryLedger::default(),
            requests: HashMap::new(),
            next_request: 0,
            open: None,
            open_retry_at: None,
            stats,
            progress_at: Instant::now(),
        }
    }

    pub(super) fn run(mut self) {
        // Components start tasks where their callers are.
        let runtime = self.runtime.clone();
        let _entered = runtime.enter();
        loop {
            let (task, request) = self.control.take();
            if let Some(task) = task {
                self.take_task(task);
            }
            match request {
                WorkerRequest::Read => {}
                WorkerRequest::StopReading => self.stop_reading(),
                WorkerRequest::End => break,
            }
            self.take_receipts();
            if self.pipelines.is_some() {
                self.read_round();
            } else {
                self.poll(IDLE_INTERVAL);
            }
        }
        self.stop_reading();
        self.take_receipts();
        self.close();
        self.withdraw_progress();
    }

    fn take_task(&mut self, task: WorkerTask) {
        let WorkerTask { read, place, pipelines, runtime: _, stats: _ } = task;
        self.close();
        if place != self.place && !position_stores::move_positions(&self.place, &place, &self.memory) {
            // The numbers of logs are those of the other place.
            self.ledger = DeliveryLedger::default();
        }
        (self.read, self.place) = (read, place);
        self.pipelines = Some(pipelines);
        self.open_retry_at = None;
    }

    fn stop_reading(&mut self) {
        let Some(set) = self.pipelines.take() else { return };
        // Without stored positions nothing reads these lines again.
        if self.place == PositionPlace::Memory {
            self.submit_held(&set.current(Signal::Logs));
        }
        if let Some(open) = &mut self.open {
            open.close_all_readers();
        }
        self.control.set_phase(WorkerPhase::Quiet);
    }

    /// Stores the positions and closes the files. What is in flight stays in the ledger.
    fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        self.control.inbox.set_reading(None);
        // What the last reads have met; logs that they found are found again.
        for event in open.files.take_events() {
            if matches!(event, LogEvent::Lost(_) | LogEvent::Problem(_)) {
                self.take_event(event);
            }
        }
        if let Err(error) = open.files.shut_down() {
            tracing::error!(receiver = %self.id, %error,
                "failed to store the positions in log files; lines will be delivered again");
            // Numbers of logs that were not stored mean other logs the next time.
            self.ledger = DeliveryLedger::default();
        }
    }

    /// Reads what there is, in turns, and waits for more.
    fn read_round(&mut self) {
        let Some(set) = self.pipelines.clone() else { return };
        let pipelines = set.current(Signal::Logs);
        drop(set);
        if !self.outputs.is_current(&pipelines) {
            self.close();
            let gone = self.outputs.replace(&pipelines);
            gone.into_iter().for_each(|output| self.ledger.forget_output(output));
        }
        self.open_files();
        self.forget_streams();
        let began = Instant::now();
        let has_more = self.take_turns(&pipelines);
        self.resume_outputs(began);
        self.flush_unfinished(&pipelines, began);
        drop(pipelines);
        self.publish_progress();
        if !has_more {
            self.control.pause(ROUND_INTERVAL.saturating_sub(began.elapsed()), WorkerRequest::Read);
        }
        let timeout = self.next_due().map_or(IDLE_INTERVAL, |due| due.saturating_duration_since(Instant::now()));
        self.poll(timeout.min(IDLE_INTERVAL));
    }

    fn open_files(&mut self) {
        if self.open.is_some() || self.open_retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        let store = position_stores::open(&self.place, &self.memory);
        match LogFiles::open(self.read.files.clone(), self.outputs.names(), Some(store)) {
            Ok(files) => {
                let handle = files.handle();
                self.control.inbox.set_reading(Some(handle.clone()));
                self.open = Some(OpenLogs::new(files, handle));
            }
            Err(error) => {
                tracing::error!(receiver = %self.id, %error, "failed to read log files, trying again in 10s");
                self.open_retry_at = Some(Instant::now() + OPEN_RETRY_INTERVAL);
            }
        }
    }

    /// Forgets logs that are gone, and that all outputs have dealt with.
    fn forget_streams(&mut self) {
        let Some(open) = &mut self.open else { return };
        if open.forget_at > Instant::now() {
            return;
        }
        open.forget_at = Instant::now() + FORGET_INTERVAL;
        let OpenLogs { files, ended, .. } = open;
        ended.retain(|stream| files.stream(*stream).is_some());
        self.ledger.retain_streams(|stream| files.stream(stream).is_some());
    }

    fn take_turns(&mut self, pipelines: &[Arc<Pipeline>]) -> bool {
        for _ in 0..TURNS_PER_ROUND {
            let Some(turn) = self.open.as_mut().and_then(|open| open.files.next_turn()) else { return false };
            self.take_turn(turn, pipelines);
        }
        true
    }

    /// Waits until something has changed, and deals with it.
    fn poll(&mut self, timeout: Duration) {
        let Some(open) = &mut self.open else {
            let seen = if self.pipelines.is_some() { WorkerRequest::Read } else { WorkerRequest::StopReading };
            return self.control.pause(timeout, seen);
        };
        for event in open.files.poll(timeout) {
            self.take_event(event);
        }
    }

    fn take_event(&mut self, event: LogEvent) {
        match event {
            LogEvent::Opened(stream) => self.open_stream(stream),
            LogEvent::Ended(stream) => self.end_stream(stream),
            LogEvent::Lost(lost) => {
                for id in lost.outputs.iter() {
                    self.outputs.get_mut(id).into_iter().for_each(|output| output.note_lost(lost.bytes.known()));
                }
                tracing::warn!(receiver = %self.id, path = %lost.path.display(), bytes = lost.bytes.known(),
                    cause = lost.cause.as_str(), outputs = lost.outputs.iter().count(),
                    "log files were removed before they were read; their lines are lost");
            }
            LogEvent::Problem(problem) => {
                tracing::warn!(receiver = %self.id, kind = problem.kind.as_str(), "{problem}");
            }
            _ => {}
        }
    }

    /// When something is to be done without an event.
    fn next_due(&self) -> Option<Instant> {
        let resumes = self.outputs.iter().filter_map(|(_, output)| output.resume_due());
        let readers = self
            .open
            .iter()
            .flat_map(|open| open.readers.iter().filter(|(id, _)| !open.paused.contains(id)).map(|(_, reader)| reader));
        let now = Instant::now();
        let flushes = readers.filter_map(|reader| reader.next_due(self.read.flush_after, now));
        resumes.chain(flushes).chain(self.open_retry_at.filter(|_| self.open.is_none())).min()
    }
}

impl OpenLogs {
    fn new(files: LogFiles, handle: LogFilesHandle) -> Self {
        Self {
            files,
            handle,
            readers: HashMap::new(),
            by_stream: HashMap::new(),
            paused: HashSet::new(),
            ended: HashSet::new(),
            buffer: Vec::new(),
            forget_at: Instant::now() + FORGET_INTERVAL,
        }
    }

    fn close_reader(&mut self, id: ReaderId) {
        self.files.close_reader(id);
        self.paused.remove(&id);
        let Some(reader) = self.readers.remove(&id) else { return };
        if let Some(others) = self.by_stream.get_mut(&reader.stream) {
            others.retain(|other| *other != id);
            if others.is_empty() {
                self.by_stream.remove(&reader.stream);
            }
        }
    }

    fn close_all_readers(&mut self) {
        let all: Vec<ReaderId> = mem::take(&mut self.readers).into_keys().collect();
        all.into_iter().for_each(|id| self.files.close_reader(id));
        self.by_stream.clear();
        self.paused.clear();
    }
}
