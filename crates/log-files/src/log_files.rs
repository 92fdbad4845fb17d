//! All log files of one receiver.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::{
    commit_table::{CommitTable, LogFilesHandle},
    directory_tree::DirectoryTree,
    directory_watch::{ChangeSet, DirectoryWatcher},
    disk_space::DiskSpace,
    events::{FileProblem, LogEvent, ProblemKind},
    file_opener::FileOpener,
    fingerprint::FileKey,
    log_stream::LogStream,
    position::{LogPosition, MAX_OUTPUTS, OutputId, OutputSet, StreamId},
    position_store::PositionStore,
    reader::ReaderTable,
    settings::{LogFilesSettings, MIN_FINGERPRINT_SIZE},
};

pub(crate) mod care;
mod copies;
mod deleted_files;
mod deletion;
mod discovery;
mod kubelet_files;
mod losses;
mod plain_files;
mod positions;
mod reading;
mod scan;
mod truncation;

pub use reading::{ReadEnd, ReadOutcome};

/// Listing everything again takes no more than this part of the time, as does listing what has to be polled.
const MAX_RESCAN_SHARE: u32 = 200;

/// Problems that are remembered so that each is reported once.
const MAX_REMEMBERED_PROBLEMS: usize = 4_096;

/// The log files that match, their positions and readers. One thread owns it, since all its I/O blocks.
///
/// ```no_run
/// use std::{collections::HashMap, time::Duration};
///
/// use kubewake_log_files::{GlobPattern, LogEvent, LogFiles, LogFilesSettings, ReadEnd, ReaderId};
///
/// # fn send(_: &[u8]) {}
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let include = vec![GlobPattern::parse("/var/log/pods/*/*/*.log")?];
/// let mut files = LogFiles::open(LogFilesSettings::new(include), vec!["loki".to_owned()], None)?;
/// let handle = files.handle();
/// let mut parts: HashMap<ReaderId, Vec<u8>> = HashMap::new();
/// let mut buffer = vec![0; 256 * 1024];
/// loop {
///     for event in files.poll(Duration::from_secs(1)) {
///         match event {
///             // Outputs at the same position share a reader.
///             LogEvent::Opened(stream) => {
///                 for (outputs, position) in files.reader_groups(stream) {
///                     files.open_reader(stream, outputs, position);
///                 }
///             }
///             other => println!("{other:?}"),
///         }
///     }
///     // A few turns, and then a look at what has changed.
///     for _ in 0..64 {
///         let Some(turn) = files.next_turn() else { break };
///         let read = files.read(turn.reader, &mut buffer);
///         let bytes = &buffer[..read.bytes];
///         // What follows the last newline is read again, unless the file ends with it.
///         let is_end = matches!(read.end, ReadEnd::EndOfGeneration | ReadEnd::EndOfStream);
///         let lines = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
///         let consumed = if is_end { bytes.len() } else { lines };
///         send(&bytes[..consumed]);
///         files.advance(turn.reader, &bytes[..consumed]);
///         // When the backend has acknowledged; here, at once.
///         let (Some(position), Some(outputs)) =
///             (files.reader_position(turn.reader), files.reader_outputs(turn.reader))
///         else {
///             continue;
///         };
///         outputs.iter().for_each(|output| handle.commit(output, turn.stream, position));
///     }
/// }
/// # }
/// ```
pub struct LogFiles {
    settings: LogFilesSettings,
    outputs: Vec<String>,
    opener: Arc<FileOpener>,
    watcher: DirectoryWatcher,
    tree: DirectoryTree,
    changes: ChangeSet,
    commits: Arc<CommitTable>,
    streams: BTreeMap<StreamId, LogStream>,
    next_stream: u64,
    /// The names that match, by directory.
    names: HashMap<PathBuf, HashMap<OsString, NameRecord>>,
    /// Which stream and generation a file belongs to.
    owners: HashMap<FileKey, (StreamId, u64)>,
    /// The streams of containers, by the path of their live file.
    kubelet_streams: HashMap<PathBuf, StreamId>,
    readers: ReaderTable,
    /// Streams that something is to be done about, and when.
    cared_for: HashMap<StreamId, Instant>,
    events: Vec<LogEvent>,
    reported_problems: HashSet<(ProblemKind, PathBuf)>,
    statistics: LogFilesStatistics,
    positions: positions::PositionKeeper,
    disk: Arc<dyn DiskSpace>,
    scans: ScanTimes,
    opened_files: usize,
    /// Streams with generations that wait for the next scan.
    awaiting_scan: HashSet<StreamId>,
    wait_times: care::WaitTimes,
    /// Files that were copies of what a stream has in another file.
    copies: HashSet<(FileKey, StreamId)>,
    /// When the last scan began.
    scan_began: Instant,
}

/// When to list directories again.
struct ScanTimes {
    has_scanned: bool,
    everything_due: Instant,
    polled_due: Instant,
    /// Before this, directories that have changed are not listed.
    changed_due: Instant,
    deleted_due: Instant,
}

/// A name that matches.
#[derive(Debug, Clone)]
struct NameRecord {
    listed_inode: u64,
    key: FileKey,
    owner: NameOwner,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameOwner {
    Stream(StreamId),
    /// A copy of what a stream has in another file.
    Copy(StreamId, u64),
    /// Nothing yet: it is looked at again when it is written.
    Nothing,
}

/// What happened so far, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilesStatistics {
    /// Bytes that readers got, uncompressed.
    pub bytes_read: u64,
    /// Streams that were found.
    pub streams_opened: u64,
    pub streams: usize,
    pub readers: usize,
    /// Disk space of deleted files that are open because they are still needed, when it was last looked at.
    pub deleted_bytes: u64,
    /// Problems by kind.
    pub problems: HashMap<ProblemKind, u64>,
    /// How often the kernel had more changes than it could keep.
    pub overflows: u64,
    /// How often positions were stored.
    pub checkpoints_saved: u64,
}

/// Why the log files cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("failed to read log files: there are {0} outputs, and at most {MAX_OUTPUTS} are possible")]
    TooManyOutputs(usize),
    #[error(
        "failed to read log files: a fingerprint of {0} bytes is too short, it needs at least {MIN_FINGERPRINT_SIZE}"
    )]
    FingerprintTooShort(usize),
    #[error(
        "failed to watch directories: {0}; the limit fs.inotify.max_user_instances or that of open files may be too low"
    )]
    Watch(#[source] io::Error),
}

impl LogFiles {
    /// Prepares reading for outputs with these names, whose positions continue where the store has them. Nothing is
    /// listed before the first `poll`.
    pub fn open(
        settings: LogFilesSettings,
        outputs: Vec<String>,
        store: Option<Box<dyn PositionStore>>,
    ) -> Result<Self, OpenError> {
        Self::open_on(settings, outputs, store, crate::disk_space::default_disk())
    }

    pub(crate) fn open_on(
        settings: LogFilesSettings,
        outputs: Vec<String>,
        store: Option<Box<dyn PositionStore>>,
        disk: Arc<dyn DiskSpace>,
    ) -> Result<Self, OpenError> {
        if outputs.len() > MAX_OUTPUTS {
            return Err(OpenError::TooManyOutputs(outputs.len()));
        }
        if settings.fingerprint_size < MIN_FINGERPRINT_SIZE {
            return Err(OpenError::FingerprintTooShort(settings.fingerprint_size));
        }
        let opener = Arc::new(FileOpener::new(settings.links.clone()));
        let watcher = DirectoryWatcher::new().map_err(|error| OpenError::Watch(error.into()))?;
        let commits = CommitTable::new().map_err(OpenError::Watch)?;
        let now = Instant::now();
        let (positions, problem) = positions::PositionKeeper::load(store, &outputs, &settings, now);
        let mut files = Self {
            tree: DirectoryTree::new(&settings, opener.clone()),
            settings,
            outputs,
            opener,
            watcher,
            changes: ChangeSet::default(),
            commits: Arc::new(commits),
            streams: BTreeMap::new(),
            next_stream: positions.next_stream(),
            names: HashMap::new(),
            owners: HashMap::new(),
            kubelet_streams: HashMap::new(),
            readers: ReaderTable::default(),
            cared_for: HashMap::new(),
            events: Vec::new(),
            reported_problems: HashSet::new(),
            statistics: LogFilesStatistics::default(),
            positions,
            disk,
            scans: ScanTimes {
                has_scanned: false,
                everything_due: now,
                polled_due: now,
                changed_due: now,
                deleted_due: now,
            },
            opened_files: 0,
            awaiting_scan: HashSet::new(),
            wait_times: care::WaitTimes::default(),
            copies: HashSet::new(),
            scan_began: now,
        };
        if let Some(problem) = problem {
            files.report(problem);
        }
        Ok(files)
    }

    /// For other threads: commits positions, and ends a wait.
    pub fn handle(&self) -> LogFilesHandle {
        LogFilesHandle::new(self.commits.clone())
    }

    /// Waits until a file or directory has changed, `LogFilesHandle::wake` is called, or the time is over; it does not
    /// wait while a reader is ready. Then it deals with what has changed, and returns what the owner has to know.
    pub fn poll(&mut self, timeout: Duration) -> Vec<LogEvent> {
        self.wait(timeout);
        self.watcher.read_changes(&mut self.changes);
        self.apply_commits();
        self.wake_written_files();
        self.scan_changes();
        self.care_for_streams();
        self.release_deleted_files();
        self.save_positions(Instant::now());
        self.take_events()
    }

    /// What has happened since the last `poll`: reads can meet losses. To be asked before `shut_down`.
    pub fn take_events(&mut self) -> Vec<LogEvent> {
        std::mem::take(&mut self.events)
    }

    /// The names of the outputs; an `OutputId` is an index into them.
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    pub fn stream(&self, stream: StreamId) -> Option<&LogStream> {
        self.streams.get(&stream)
    }

    pub fn streams(&self) -> impl Iterator<Item = &LogStream> {
        self.streams.values()
    }

    /// The outputs of a stream by their committed positions: each entry needs a reader.
    pub fn reader_groups(&self, stream: StreamId) -> Vec<(OutputSet, LogPosition)> {
        let mut groups: BTreeMap<LogPosition, OutputSet> = BTreeMap::new();
        let Some(stream) = self.streams.get(&stream) else { return Vec::new() };
        for (index, position) in stream.committed.iter().enumerate() {
            groups.entry(*position).or_default().insert(OutputId(index as u8));
        }
        groups.into_iter().map(|(position, outputs)| (outputs, position)).collect()
    }

    pub fn statistics(&self) -> LogFilesStatistics {
        LogFilesStatistics { streams: self.streams.len(), readers: self.readers.len(), ..self.statistics.clone() }
    }

    fn wait(&mut self, timeout: Duration) {
        let now = Instant::now();
        let is_busy = self.readers.has_ready()
            || !self.events.is_empty()
            || !self.changes.files.is_empty()
            || self.commits.has_any();
        let due = [
            Some(self.scans.everything_due),
            (!self.changes.directories.is_empty()).then_some(self.scans.changed_due),
            (!self.tree.polled().is_empty()).then_some(self.scans.polled_due),
            self.cared_for.values().min().copied(),
            (self.statistics.deleted_bytes > 0).then_some(self.scans.deleted_due),
            self.positions.save_due(),
        ];
        let next = due.into_iter().flatten().min().map_or(timeout, |due| due.saturating_duration_since(now));
        let wait = if is_busy { Duration::ZERO } else { timeout.min(next) };
        let Ok(wait) = Timespec::try_from(wait) else { return };
        let mut descriptors = [
            PollFd::from_borrowed_fd(self.watcher.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.commits.as_fd(), PollFlags::IN),
        ];
        // An interrupted wait is as good as one that is over.
        let _ = rustix::event::poll(&mut descriptors, Some(&wait));
        self.commits.clear_wake();
    }

    /// Reports a problem when it is new, and counts it.
    fn report(&mut self, problem: FileProblem) {
        *self.statistics.problems.entry(problem.kind).or_default() += 1;
        let key = (problem.kind, problem.path.clone());
        if self.reported_problems.len() >= MAX_REMEMBERED_PROBLEMS {
            self.reported_problems.clear();
        }
        if self.reported_problems.insert(key) {
            self.events.push(LogEvent::Problem(problem));
        }
    }

    /// The problem is over, so that it would be reported again.
    fn clear_problem(&mut self, kind: ProblemKind, path: &Path) {
        if !self.reported_problems.is_empty() {
            self.reported_problems.remove(&(kind, path.to_path_buf()));
        }
    }

    fn wake_stream(&mut self, stream: StreamId) {
        let Some(stream) = self.streams.get(&stream) else { return };
        for reader in &stream.readers {
            self.readers.wake(*reader);
        }
    }

    /// The stream is looked after soon.
    fn care_soon(&mut self, stream: StreamId) {
        self.cared_for.insert(stream, Instant::now());
    }
}

/// How long ago a file was written; zero if the clock says that it was in the future.
fn time_since(modified: Option<SystemTime>) -> Duration {
    modified.and_then(|modified| SystemTime::now().duration_since(modified).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
