//! What containers say, kept and read back.
//!
//! *Guarantees.* Two [files](file) of a given size for each run of a container, of its last run and of the one before. A reader that follows
//! ends when the run has. A disk that is full costs lines, and stops no program. Logs are found again by a node that starts again in the same
//! directory. *Not done*: logs do not outlive their pod.

mod file;
pub(crate) mod line;
mod read;

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
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

/// The logs of a node: `UID/CONTAINER/NUMBER.log`. Clones are the same.
#[derive(Clone, Debug)]
pub struct Logs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    /// Of one file, in bytes.
    limit: u64,
    /// Those that somebody wrote or read, by the uid of the pod, then by the name of the container.
    known: Mutex<Known>,
}

type Known = HashMap<String, HashMap<String, ContainerLogs>>;

#[derive(Debug, Default)]
struct ContainerLogs {
    last: Option<Arc<RunLog>>,
    previous: Option<Arc<RunLog>>,
    /// No file has this number or a higher one.
    free: i32,
}

impl ContainerLogs {
    /// What is left of an earlier life of the node.
    fn found(dir: &Path, limit: u64) -> Self {
        let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let number = |name: OsString| name.to_str()?.strip_suffix(".log")?.parse().ok();
        let mut numbers: Vec<i32> = names.filter_map(number).collect();
        numbers.sort_unstable();
        let free = numbers.last().map_or(0, |last| last.saturating_add(1));
        let mut open = || RunLog::open_again(file(dir, numbers.pop()?), limit).ok().map(Arc::new);
        Self { last: open(), previous: open(), free }
    }
}

/// Nothing else in the directory is ours to remove.
fn is_uid(name: &str) -> bool {
    name.len() == 36 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn file(dir: &Path, number: i32) -> PathBuf {
    dir.join(format!("{number}.log"))
}

/// Where the output of one run goes.
#[derive(Clone, Debug)]
pub(super) struct RunOutput(Arc<RunLog>);

impl Logs {
    /// Of all containers that keep their logs below this directory, in files of this size.
    pub(super) fn new(dir: PathBuf, limit: u64) -> Self {
        Self(Arc::new(Shared { dir, limit, known: Mutex::default() }))
    }

    /// Begins the log of a run of a container. The run before it stays, those before that go.
    pub(super) fn begin(&self, run: &Run<'_>) -> io::Result<RunOutput> {
        let (dir, limit) = (self.place(run.uid, run.container), self.0.limit);
        let mut known = self.known();
        let container = self.container(&mut known, run.uid, run.container);
        // What programs say is for nobody else to read.
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        // A node that was killed may have counted further than it could say.
        let number = run.number.max(container.free);
        let log = Arc::new(RunLog::create(file(&dir, number), limit)?);
        container.free = number.saturating_add(1);
        let before = container.last.replace(Arc::clone(&log));
        if let Some(old) = std::mem::replace(&mut container.previous, before) {
            old.remove();
        }
        Ok(RunOutput(log))
    }

    /// The pod is gone.
    pub(super) fn remove(&self, uid: &str) {
        self.known().remove(uid);
        let dir = self.0.dir.join(uid);
        if let Err(error) = fs::remove_dir_all(&dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(directory = %dir.display(), %error, "the logs of a pod that is gone stay");
        }
    }

    /// Removes the logs of all pods but these, which are asked for once it is known who has logs: the others went while nobody looked.
    pub(super) fn remove_others(&self, pods: impl FnOnce() -> HashSet<String>) {
        let entries = fs::read_dir(&self.0.dir).into_iter().flatten().flatten();
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let pods = pods();
        names.iter().filter(|name| is_uid(name) && !pods.contains(*name)).for_each(|uid| self.remove(uid));
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
        let mut known = self.known();
        if known.get(&request.uid).is_none_or(|pod| !pod.contains_key(&request.container))
            && !self.place(&request.uid, &request.container).is_dir()
        {
            // Nothing is remembered of who may never come.
            return None;
        }
        let logs = self.container(&mut known, &request.uid, &request.container);
        if request.options.previous { logs.previous.clone() } else { logs.last.clone() }
    }

    fn place(&self, uid: &str, container: &str) -> PathBuf {
        self.0.dir.join(uid).join(container)
    }

    fn container<'a>(&self, known: &'a mut Known, uid: &str, name: &str) -> &'a mut ContainerLogs {
        let pod = known.entry(uid.to_owned()).or_default();
        let found = || ContainerLogs::found(&self.place(uid, name), self.0.limit);
        pod.entry(name.to_owned()).or_insert_with(found)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// How often it was started before.
    pub(super) number: i32,
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
