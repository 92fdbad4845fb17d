//! `file`: writes data to a file, as lines of OTLP JSON or as length-prefixed protobuf.
//!
//! *Guaranteed*: a batch is delivered when the operating system has all of it, so that there is nothing to
//! flush: `flush_interval` is accepted, and has no effect. Each request is one line (or one length with its
//! bytes), and lines are whole: an incomplete write is truncated. A full disk, a missing directory and the like
//! are temporary: the batch is retried. Files are written off the runtime's threads.
//!
//! The path must be writable when the exporter is built. The file is opened for good with the first data.
//! Without `append` and without rotation it is emptied then, but only if this process has not had it open
//! before: a new configuration never costs data that was written. All exporters of a process with the same path
//! share one open file.
//!
//! `compression: zstd` compresses each request by itself, with a length before it in either format. With
//! `group_by` each value of an attribute has a file of its own: see [`file_groups`].
//!
//! *Not done*: it does not wait for the disk (fsync), and does not lock the file against other processes.

mod file_encoding;
mod file_groups;
mod rotation;
mod shared_file;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use kubewake_config::model::{FileExporter, RetryConfig, RotationConfig};
use kubewake_otlp::NoMemory;

use self::{
    file_encoding::FileEncoding,
    file_groups::{FileGroups, GroupedRequests},
    shared_file::{ExistingContent, PathRetention, SharedFile},
};
use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{
        Batch, DestinationLabels, Exporter, RejectReason, RejectionCounts, SendError, SendFuture, SendSuccess,
        WorkMemory,
    },
};

/// The first pause after a failure. Shorter than for a network: an attempt costs nothing.
const INITIAL_RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct FileWriter {
    target: Arc<FileTarget>,
    encoding: FileEncoding,
    existing_content: ExistingContent,
    rotation: Option<RotationConfig>,
    now: fn() -> SystemTime,
}

enum FileTarget {
    Single(Arc<SharedFile>),
    /// One file for each value of an attribute.
    Grouped(FileGroups),
}

pub(crate) fn prepare(settings: &FileExporter, _: &ExporterContext<'_>) -> Result<PreparedExporter, BuildError> {
    build(settings).map(PreparedExporter::new)
}

/// Builds the exporter. As in the Collector it has no queue: a sender is answered when its data is written, or
/// the write has failed. Data that a processor has acknowledged already is retried for five minutes.
///
/// # Errors
///
/// If the file cannot be opened.
fn build(settings: &FileExporter) -> Result<ExporterParts, BuildError> {
    build_with(settings, SystemTime::now)
}

fn build_with(settings: &FileExporter, now: fn() -> SystemTime) -> Result<ExporterParts, BuildError> {
    let target = open_target(settings)
        .map_err(|error| BuildError(format!("failed to write to {}: {error}", settings.path.display())))?;
    // When a group's file is opened again, it is no longer known that this process has written to it.
    let keep = settings.append || settings.rotation.is_some() || settings.group_by.is_some();
    let exporter = FileWriter {
        target: Arc::new(target),
        encoding: FileEncoding { format: settings.format, zstd: settings.zstd },
        existing_content: if keep { ExistingContent::Keep } else { ExistingContent::Truncate },
        rotation: settings.rotation.clone(),
        now,
    };
    let retry = RetryConfig { initial_interval: INITIAL_RETRY_INTERVAL, ..RetryConfig::default() };
    let destination = DestinationLabels::default();
    Ok(ExporterParts { exporter: Arc::new(exporter), timeout: None, retry: Some(retry), queue: None, destination })
}

/// Opens the target, so that an unusable path is reported before data arrives.
fn open_target(settings: &FileExporter) -> io::Result<FileTarget> {
    let path = &settings.path;
    if let Some(group) = &settings.group_by {
        return FileGroups::new(path, group, settings.create_directory).map(FileTarget::Grouped);
    }
    if let Some(mode) = settings.create_directory {
        create_directory(path, mode)?;
    }
    let sink = SharedFile::for_path(path, PathRetention::Always)?;
    sink.create()?;
    Ok(FileTarget::Single(sink))
}

/// Creates the parent directory of a file.
fn create_directory(file: &Path, mode: u32) -> io::Result<()> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.map_or(Ok(()), |directory| DirBuilder::new().recursive(true).mode(mode).create(directory))
}

impl Exporter for FileWriter {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        let file = self.clone();
        let batch = batch.clone();
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || file.write(&batch)).await;
            written.unwrap_or_else(|error| Err(SendError::from_join_error(&error)))
        })
    }
}

impl FileWriter {
    fn write(&self, batch: &Batch) -> Result<SendSuccess, SendError> {
        let Some(mut memory) = WorkMemory::for_batch(batch) else { return Ok(SendSuccess::default()) };
        match &*self.target {
            FileTarget::Single(sink) => {
                let mut data = Vec::new();
                for part in batch.parts() {
                    self.encoding.encode(batch.signal(), &part.bytes, &mut data, &mut memory)?;
                }
                self.append(sink, &data).map_err(|error| write_error(sink.path(), &error))?;
                Ok(SendSuccess::default())
            }
            FileTarget::Grouped(groups) => self.write_groups(groups, batch, &mut memory),
        }
    }

    fn append(&self, sink: &SharedFile, data: &[u8]) -> io::Result<()> {
        sink.write(data, self.existing_content, self.encoding.is_lines(), self.rotation.as_ref(), self.now)
    }

    /// Writes each group to its file. Items without a group are rejected and reported.
    fn write_groups(
        &self,
        groups: &FileGroups,
        batch: &Batch,
        memory: &mut WorkMemory<'_>,
    ) -> Result<SendSuccess, SendError> {
        let mut files: BTreeMap<_, (Vec<u8>, usize)> = BTreeMap::new();
        let mut rejected = 0;
        let mut message = String::new();
        for part in batch.parts() {
            let sorted = groups.group_request(batch.signal(), part, memory);
            let GroupedRequests { requests, ungrouped_items: left } = sorted.map_err(|NoMemory| memory.send_error())?;
            rejected += left;
            for (path, (request, items)) in requests {
                let (data, count) = files.entry(path).or_default();
                self.encoding.encode(batch.signal(), &request, data, memory)?;
                *count += items;
            }
        }
        if rejected > 0 {
            message = format!("no file for resources without a valid {}", groups.attribute());
        }
        for (path, (data, items)) in files {
            match groups.open(&path).and_then(|sink| self.append(&sink, &data)) {
                Err(error) if file_groups::is_permanent(&error) => {
                    rejected += items;
                    message = format!("failed to write to a file of a group: {error}");
                }
                written => written.map_err(|error| write_error(&path, &error))?,
            }
        }
        Ok(SendSuccess {
            rejected: RejectionCounts::from_reason(RejectReason::Target, rejected as u64),
            message,
            truncated: 0,
        })
    }
}

/// The file cannot be written, which may pass.
fn write_error(path: &Path, error: &io::Error) -> SendError {
    SendError::local(format!("failed to write to {}: {error}", path.display()))
}
