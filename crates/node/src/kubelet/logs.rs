//! What containers say, kept and read back.
//!
//! *Guarantees.* Two [files](file) of a given size for each run of a container, of its last run and of the one before. A reader that follows
//! ends when the run has. A disk that is full costs lines, and stops no program. *Not done*: logs do not outlive their pod, nor
//! the cluster.

mod file;
mod line;
mod read;

use std::{
    collections::HashMap,
    fs, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream as Items, stream};
use jiff::Timestamp;
use kubewake_apiserver::nodes::LogRequest;
use tokio::net::unix::pipe::Receiver;

use self::{
    file::{Place, RunLog},
    line::{Entry, Splitter, Stream},
    read::Reader,
};
use super::process::Output;

/// So much of a container's output is read at once. A program that says more than that at a time has to wait for a moment, so that it
/// does not keep the node from its work: it may say ten MiB a second, about.
const READ: usize = 16 << 10;
const REST: Duration = Duration::from_millis(1);

/// Why there is no log to read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No such pod, or container, has run here.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    NotStarted {
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        container: String,
        /// What it waits for, such as `ContainerCreating`.
        reason: String,
    },
    /// It ran only once.
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        container: String,
    },
    /// A file.
    #[error("the log cannot be read")]
    Read(#[from] io::Error),
}

/// The logs of a node: by the uid of the pod, then by the name of the container. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Logs(Arc<Mutex<HashMap<String, HashMap<String, ContainerLogs>>>>);

#[derive(Debug, Default)]
struct ContainerLogs {
    last: Option<Arc<RunLog>>,
    previous: Option<Arc<RunLog>>,
}

/// Where the output of one run goes.
#[derive(Clone, Debug)]
pub(super) struct RunOutput(Arc<RunLog>);

impl Logs {
    /// Begins the log of a run of a container. The run before it stays, those before that go.
    pub(super) fn begin(&self, run: &Run<'_>) -> io::Result<RunOutput> {
        fs::create_dir_all(run.dir)?;
        let log = Arc::new(RunLog::create(run.dir.join(format!("{}.log", run.number)), run.limit)?);
        let mut pods = self.pods();
        let pod = pods.entry(run.uid.to_owned()).or_default();
        let container = pod.entry(run.container.to_owned()).or_default();
        let before = container.last.replace(Arc::clone(&log));
        if let Some(old) = std::mem::replace(&mut container.previous, before) {
            old.remove();
        }
        Ok(RunOutput(log))
    }

    /// The pod is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.pods().remove(uid);
    }

    /// The log of a container in pieces, lines first to last.
    ///
    /// # Errors
    /// If the container has not run, or not twice if the previous run is asked for.
    pub fn open(&self, request: &LogRequest) -> Result<impl Items<Item = Bytes> + Send + use<>, LogError> {
        let log = self.find(request).ok_or_else(|| missing(request))?;
        let reader = Reader::new(log, &request.options, Timestamp::now())?;
        Ok(stream::unfold(reader, Reader::next))
    }

    fn find(&self, request: &LogRequest) -> Option<Arc<RunLog>> {
        let pods = self.pods();
        let pod = pods.get(&request.uid)?;
        let logs = pod.get(&request.container)?;
        if request.options.previous { logs.previous.clone() } else { logs.last.clone() }
    }

    fn pods(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, ContainerLogs>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(request: &LogRequest) -> LogError {
    let (pod, container) = (request.pod.clone(), request.container.clone());
    match request.options.previous {
        true => LogError::NoPrevious { pod, container },
        false => LogError::NotStarted { pod, container, reason: "ContainerCreating".to_owned() },
    }
}

/// Which run a log is of.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) uid: &'a str,
    pub(super) container: &'a str,
    /// Of the container's logs.
    pub(super) dir: &'a Path,
    /// How often it was started before.
    pub(super) number: i32,
    /// Of one file, in bytes.
    pub(super) limit: u64,
}

impl RunOutput {
    /// Keeps everything until both streams have ended.
    pub(super) async fn keep(self, output: Output) {
        let out = self.keep_stream(output.stdout, Stream::Stdout);
        let err = self.keep_stream(output.stderr, Stream::Stderr);
        tokio::join!(out, err);
        self.0.end();
    }

    /// Nothing more is kept.
    pub(super) fn end(&self) {
        self.0.end();
    }

    async fn keep_stream(&self, from: Receiver, stream: Stream) {
        let mut splitter = Splitter::new(stream);
        let mut entries = Vec::new();
        while from.readable().await.is_ok() {
            // Made anew each time: most containers are silent most of the time, and there are many.
            let mut block = Vec::with_capacity(READ);
            match from.try_read_buf(&mut block) {
                Ok(0) => break,
                Ok(_) => splitter.push(&block, Timestamp::now(), &mut entries),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            }
            self.append(&mut entries);
            if block.len() >= READ {
                tokio::time::sleep(REST).await;
            }
        }
        splitter.finish(Timestamp::now(), &mut entries);
        self.append(&mut entries);
    }

    /// The write goes to the page cache; there is no need to leave the thread for it.
    fn append(&self, entries: &mut Vec<u8>) {
        if !entries.is_empty()
            && let Err(error) = self.0.append(entries)
        {
            tracing::warn!(%error, "lines of a container's log are lost");
        }
        *entries = Vec::new();
    }

    /// The last words: so many lines at most, and so many bytes of them.
    pub(super) fn last_words(&self, lines: u64, bytes: usize) -> String {
        let entries = self.last_entries(lines).unwrap_or_default();
        let mut text = Vec::new();
        for entry in entries.split(|byte| *byte == b'\n').filter_map(Entry::parse) {
            text.extend_from_slice(entry.text);
            if entry.full {
                text.push(b'\n');
            }
        }
        let text = text.get(text.len().saturating_sub(bytes)..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Not more than fits into two MiB, which is enough for 80 of the longest kind.
    fn last_entries(&self, lines: u64) -> io::Result<Vec<u8>> {
        use std::io::{Read, Seek, SeekFrom};
        let (mut place, mut entries) = (self.0.before_last(lines)?, Vec::new());
        loop {
            let (part, mut file) = self.0.open(place.part)?;
            if part == place.part {
                file.seek(SeekFrom::Start(place.offset))?;
            }
            file.take(2 << 20).read_to_end(&mut entries)?;
            if part >= self.0.progress().borrow().part {
                return Ok(entries);
            }
            place = Place { part: part + 1, offset: 0 };
        }
    }
}

#[cfg(test)]
mod tests;
