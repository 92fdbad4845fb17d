//! The baseline of a log agent: reads files, finds their line ends, and sends as many bytes for each line.
//!
//! It looks at no line. The records that it sends are all the same, so that its cost is that of reading, of copying as
//! many bytes as the requests have, and of sending them. It keeps no promise: what was read and not sent is lost.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use bytes::Bytes;
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{settings, upstream::Upstream};

/// Bytes of a request: those of the agent's.
const REQUEST_BYTES: usize = 512 << 10;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// How long it waits before it looks for the folder again.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until the folder is there, and sends all lines of the files below it.
pub(crate) async fn read_folder(folder: &Path, record_bytes: usize, upstream: Upstream) -> anyhow::Result<()> {
    while !folder.exists() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let mut files = Vec::new();
    list_files(folder, &mut files)?;
    let mut sender = RecordSender::new(record_bytes, upstream);
    for file in files {
        sender.read_file(&file).await?;
    }
    sender.finish().await
}

fn list_files(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() { list_files(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Collects records, and sends them.
struct RecordSender {
    record: Vec<u8>,
    records: Vec<u8>,
    upstream: Arc<Upstream>,
    in_flight: Arc<Semaphore>,
    calls: JoinSet<anyhow::Result<()>>,
}

impl RecordSender {
    fn new(record_bytes: usize, upstream: Upstream) -> Self {
        Self {
            record: encode_record(record_bytes),
            records: Vec::with_capacity(REQUEST_BYTES + record_bytes),
            upstream: Arc::new(upstream),
            in_flight: Arc::new(Semaphore::new(settings::MAX_IN_FLIGHT_REQUESTS)),
            calls: JoinSet::new(),
        }
    }

    async fn read_file(&mut self, path: &Path) -> anyhow::Result<()> {
        let mut file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let length = file.read(&mut chunk)?;
            let Some(read) = chunk.get(..length).filter(|read| !read.is_empty()) else { return Ok(()) };
            for _ in memchr::memchr_iter(b'\n', read) {
                self.records.extend_from_slice(&self.record);
                if self.records.len() >= REQUEST_BYTES {
                    self.send().await?;
                }
            }
        }
    }

    /// Sends what was collected, when no more requests are in flight than are allowed.
    async fn send(&mut self) -> anyhow::Result<()> {
        let room = Vec::with_capacity(self.records.capacity());
        let records = Bytes::from(std::mem::replace(&mut self.records, room));
        let permit = Arc::clone(&self.in_flight).acquire_owned().await?;
        let upstream = Arc::clone(&self.upstream);
        self.calls.spawn(async move {
            let _permit = permit;
            upstream.send(vec![encode_prefix(records.len()), records]).await
        });
        while let Some(ended) = self.calls.try_join_next() {
            ended??;
        }
        Ok(())
    }

    async fn finish(mut self) -> anyhow::Result<()> {
        if !self.records.is_empty() {
            self.send().await?;
        }
        while let Some(ended) = self.calls.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// A log record of that many bytes, with its header: a body of blanks.
fn encode_record(bytes: usize) -> Vec<u8> {
    // The lengths take as many bytes whatever the text is, if it is neither short nor very long.
    let text = vec![b' '; bytes.saturating_sub(9)];
    let value = field(1, &text);
    field(2, &field(5, &value))
}

/// What is in front of the records of a request: the headers of `ResourceLogs` and `ScopeLogs`.
fn encode_prefix(length: usize) -> Bytes {
    let mut scope = vec![0x12];
    put_varint(&mut scope, length);
    let mut out = vec![0x0a];
    put_varint(&mut out, scope.len() + length);
    out.extend_from_slice(&scope);
    Bytes::from(out)
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    put_varint(&mut out, content.len());
    out.extend_from_slice(content);
    out
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
