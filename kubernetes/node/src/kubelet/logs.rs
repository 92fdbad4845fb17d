//! Container logs: written, rotated and read.
//!
//! *Guaranteed*: there are two [files](run_log) of a given size for each run of a container, for its last run
//! and the one before. A following reader ends when the run has ended. A full disk loses lines and stops no
//! program. A node that restarts with the same directory finds its logs again. *Not done*: logs do not outlive
//! their pod.

pub(crate) mod line;
mod reader;
mod run_log;

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream as Items, stream};
use jiff::Timestamp;
use kubewake_apiserver::kubelet_client::LogRequest;
use kubewake_runtime::lock::Mutex;
use tokio::net::unix::pipe::Receiver;

use self::{
    line::{LineSplitter, LogEntry, OutputStream},
    reader::LogReader,
    run_log::{LogPosition, RunLog},
};
use super::process::ProcessOutput;

/// The bytes of output that are read at once. A program that writes more has to wait for a moment, so that it
/// does not block the node: the limit is about 10 MiB per second.
const READ_CHUNK_BYTES: usize = 16 << 10;
const READ_PAUSE: Duration = Duration::from_millis(1);

/// The reason why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The pod or container has not run on this node.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    NotStarted {
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        container: String,
        /// The reason of the waiting state, such as `ContainerCreating`.
        reason: String,
    },
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        container: String,
    },
    #[error("failed to read the log")]
    Read(#[from] io::Error),
}

/// The logs of a node: `UID/CONTAINER/NUMBER.log`. Clones share their state.
#[derive(Clone, Debug)]
pub struct ContainerLogStore(Arc<LogStoreState>);

#[derive(Debug)]
struct LogStoreState {
    dir: PathBuf,
    /// The limit of one file.
    max_file_bytes: u64,
    /// The known logs, by pod uid and container name.
    known: Mutex<LogsByPod>,
}

type LogsByPod = HashMap<String, HashMap<String, ContainerLogs>>;

#[derive(Debug, Default)]
struct ContainerLogs {
    last: Option<Arc<RunLog>>,
    previous: Option<Arc<RunLog>>,
    /// The next unused file number.
    next_number: i32,
}

impl ContainerLogs {
    /// Finds the logs that an earlier run of the node has left.
    fn scan_directory(dir: &Path, limit: u64) -> Self {
        let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let number = |name: OsString| name.to_str()?.strip_suffix(".log")?.parse().ok();
        let mut numbers: Vec<i32> = names.filter_map(number).collect();
        numbers.sort_unstable();
        let next_number = numbers.last().map_or(0, |last| last.saturating_add(1));
        let mut open = || RunLog::open_finished(log_path(dir, numbers.pop()?), limit).ok().map(Arc::new);
        Self { last: open(), previous: open(), next_number }
    }
}

/// Only directories named by a uid are ours to remove.
fn is_uid(name: &str) -> bool {
    name.len() == 36 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn log_path(dir: &Path, number: i32) -> PathBuf {
    dir.join(format!("{number}.log"))
}

/// The output of one run.
#[derive(Clone, Debug)]
pub(super) struct RunOutput(Arc<RunLog>);

impl ContainerLogStore {
    /// Creates the logs of a node in this directory, with files of this size.
    pub(super) fn new(dir: PathBuf, limit: u64) -> Self {
        Self(Arc::new(LogStoreState { dir, max_file_bytes: limit, known: Mutex::default() }))
    }

    /// Begins the log of a run of a container. The log of the previous run is kept, earlier ones are removed.
    pub(super) fn begin(&self, run: &ContainerLogKey<'_>) -> io::Result<RunOutput> {
        let dir = self.container_dir(run.uid, run.container);
        let limit = self.0.max_file_bytes;
        let mut known = self.lock_logs();
        let container = self.container(&mut known, run.uid, run.container);
        // Only the owner may read the output of programs.
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        // A node that was killed may not have recorded its last restart count.
        let number = run.number.max(container.next_number);
        let log = Arc::new(RunLog::create(log_path(&dir, number), limit)?);
        container.next_number = number.saturating_add(1);
        let before = container.last.replace(Arc::clone(&log));
        if let Some(old) = std::mem::replace(&mut container.previous, before) {
            old.remove();
        }
        Ok(RunOutput(log))
    }

    pub(super) fn remove(&self, uid: &str) {
        self.lock_logs().remove(uid);
        let dir = self.0.dir.join(uid);
        if let Err(error) = fs::remove_dir_all(&dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(directory = %dir.display(), %error, "failed to remove the logs of a deleted pod");
        }
    }

    /// Removes the logs of all other pods. The pods are requested after the logs are listed; the other pods
    /// were deleted while the node did not run.
    pub(super) fn remove_others(&self, pods: impl FnOnce() -> HashSet<String>) {
        let entries = fs::read_dir(&self.0.dir).into_iter().flatten().flatten();
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let pods = pods();
        names.iter().filter(|name| is_uid(name) && !pods.contains(*name)).for_each(|uid| self.remove(uid));
    }

    /// The log of a container in chunks, in order.
    ///
    /// # Errors
    /// If the container has not run, or has no previous run if that is requested.
    pub fn open(&self, request: &LogRequest) -> Result<impl Items<Item = Bytes> + Send + use<>, LogError> {
        let log = self.find(request).ok_or_else(|| missing_log_error(request))?;
        let reader = LogReader::new(log, &request.options, Timestamp::now())?;
        Ok(stream::unfold(reader, LogReader::next))
    }

    fn find(&self, request: &LogRequest) -> Option<Arc<RunLog>> {
        let mut known = self.lock_logs();
        if known.get(&request.uid).is_none_or(|pod| !pod.contains_key(&request.container))
            && !self.container_dir(&request.uid, &request.container).is_dir()
        {
            // Unknown containers are not remembered, as they may never start.
            return None;
        }
        let logs = self.container(&mut known, &request.uid, &request.container);
        if request.options.previous { logs.previous.clone() } else { logs.last.clone() }
    }

    fn container_dir(&self, uid: &str, container: &str) -> PathBuf {
        self.0.dir.join(uid).join(container)
    }

    fn container<'a>(&self, known: &'a mut LogsByPod, uid: &str, name: &str) -> &'a mut ContainerLogs {
        let pod = known.entry(uid.to_owned()).or_default();
        let found = || ContainerLogs::scan_directory(&self.container_dir(uid, name), self.0.max_file_bytes);
        pod.entry(name.to_owned()).or_insert_with(found)
    }

    fn lock_logs(&self) -> MutexGuard<'_, LogsByPod> {
        self.0.known.lock()
    }
}

fn missing_log_error(request: &LogRequest) -> LogError {
    let pod = request.pod.clone();
    let container = request.container.clone();
    if request.options.previous {
        LogError::NoPrevious { pod, container }
    } else {
        LogError::NotStarted { pod, container, reason: "ContainerCreating".to_owned() }
    }
}

/// The run of a container to which a log belongs.
#[derive(Debug)]
pub(super) struct ContainerLogKey<'a> {
    pub(super) uid: &'a str,
    pub(super) container: &'a str,
    /// The restart count.
    pub(super) number: i32,
}

impl RunOutput {
    /// Stores the output until both streams have ended.
    pub(super) async fn store_output(self, output: ProcessOutput) {
        let out = self.store_stream(output.stdout, OutputStream::Stdout);
        let err = self.store_stream(output.stderr, OutputStream::Stderr);
        tokio::join!(out, err);
        self.0.finish();
    }

    pub(super) fn finish(&self) {
        self.0.finish();
    }

    async fn store_stream(&self, from: Receiver, stream: OutputStream) {
        let mut splitter = LineSplitter::new(stream);
        let mut entries = Vec::new();
        while from.readable().await.is_ok() {
            // Allocated for each read: there may be many containers, and most are silent most of the time.
            let mut block = Vec::with_capacity(READ_CHUNK_BYTES);
            match from.try_read_buf(&mut block) {
                Ok(0) => break,
                Ok(_) => splitter.push(&block, Timestamp::now(), &mut entries),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            }
            self.append(&mut entries);
            if block.len() >= READ_CHUNK_BYTES {
                tokio::time::sleep(READ_PAUSE).await;
            }
        }
        splitter.finish(Timestamp::now(), &mut entries);
        self.append(&mut entries);
    }

    /// The write goes to the page cache, so it does not need a blocking thread.
    fn append(&self, entries: &mut Vec<u8>) {
        if !entries.is_empty()
            && let Err(error) = self.0.append(entries)
        {
            tracing::warn!(%error, "failed to write a container's log, lines are lost");
        }
        *entries = Vec::new();
    }

    /// The tail of the log, limited in lines and bytes.
    pub(super) fn tail(&self, lines: u64, bytes: usize) -> String {
        let entries = self.tail_entries(lines).unwrap_or_default();
        let mut text = Vec::new();
        for entry in entries.split(|byte| *byte == b'\n').filter_map(LogEntry::parse) {
            text.extend_from_slice(entry.text);
            if entry.full {
                text.push(b'\n');
            }
        }
        let text = text.get(text.len().saturating_sub(bytes)..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Reads at most 2 MiB, enough for 80 entries of the longest kind.
    fn tail_entries(&self, lines: u64) -> io::Result<Vec<u8>> {
        use std::io::{Read, Seek, SeekFrom};
        let mut place = self.0.position_before_last(lines)?;
        let mut entries = Vec::new();
        loop {
            let (part, mut file) = self.0.open(place.part)?;
            if part == place.part {
                file.seek(SeekFrom::Start(place.offset))?;
            }
            file.take(2 << 20).read_to_end(&mut entries)?;
            if part >= self.0.progress().borrow().part {
                return Ok(entries);
            }
            place = LogPosition { part: part + 1, offset: 0 };
        }
    }
}

#[cfg(test)]
mod tests;
