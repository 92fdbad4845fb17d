//! `file`: writes what comes to a file, as lines of OTLP JSON or as protobuf with a length before each request.
//!
//! *Guarantees.* A batch is delivered when the operating system has all of it, so that there is nothing to flush:
//! `flush_interval` is read, and has no effect. Each request is one line (or one length with its bytes), and lines are whole: what could
//! not be written to its end is taken back. A full disk, a missing directory and the like are temporary: the batch is
//! tried again. Files are written off the runtime's threads.
//!
//! The path must be one that can be written when the exporter is built. The file is opened for good with the first data. Without `append` and without rotation it is emptied then, but only if this
//! process has not had it open before: a new configuration never costs what was already written. All exporters of a
//! process with the same path share one open file.
//!
//! `compression: zstd` compresses each request by itself, with a length before it in either format. With `group_by` each
//! value of an attribute has a file of its own: see [`group`].
//!
//! *Does not* wait for the disk (fsync), and does not lock the file against other processes.

mod encode;
mod group;
mod rotation;
mod sink;

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

use kubewake_config::{
    model::{FileExporter, Retry, Rotation},
    mounted,
};
use kubewake_otlp::NoMemory;

use self::{
    encode::Form,
    group::{Groups, Sorted},
    sink::{Keeping, Sink, Start},
};
use crate::{
    components::{BuildError, BuiltExporter},
    core::{Batch, Delivered, Destination, Exporter, SendError, SendFuture, WorkMemory},
};

/// The first pause after a failure. Shorter than over a network: looking again costs nothing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct File {
    target: Arc<Target>,
    form: Form,
    start: Start,
    rotation: Option<Rotation>,
    now: fn() -> SystemTime,
}

/// Where it is written to.
enum Target {
    /// Everything to one file.
    One(Arc<Sink>),
    /// To a file for each value of an attribute.
    Each(Groups),
}

/// Builds it. As in the Collector it has no queue: a sender is answered when its data is written, or could not be. What a
/// processor has acknowledged already is tried again for five minutes.
///
/// # Errors
///
/// If the file cannot be opened.
pub(crate) fn build(settings: &FileExporter) -> Result<BuiltExporter, BuildError> {
    build_with(settings, SystemTime::now)
}

fn build_with(settings: &FileExporter, now: fn() -> SystemTime) -> Result<BuiltExporter, BuildError> {
    let target = target(settings)
        .map_err(|error| BuildError(format!("cannot write to {}: {error}", settings.path.display())))?;
    // What was written to a group's file before is not known any more when the file is opened again.
    let keep = settings.append || settings.rotation.is_some() || settings.group_by.is_some();
    let exporter = File {
        target: Arc::new(target),
        form: Form { format: settings.format, zstd: settings.zstd },
        start: if keep { Start::Keep } else { Start::Empty },
        rotation: settings.rotation.clone(),
        now,
    };
    let retry = Retry { initial_interval: FIRST_PAUSE, ..Retry::default() };
    let destination = Destination::default();
    Ok(BuiltExporter { exporter: Arc::new(exporter), timeout: None, retry: Some(retry), queue: None, destination })
}

/// A path that does not work must show before data comes.
fn target(settings: &FileExporter) -> io::Result<Target> {
    let path = mounted(&settings.path);
    if let Some(group) = &settings.group_by {
        return Groups::new(&path, group, settings.create_directory).map(Target::Each);
    }
    if let Some(mode) = settings.create_directory {
        create_directory(&path, mode)?;
    }
    let sink = Sink::at(&path, Keeping::Always)?;
    sink.create()?;
    Ok(Target::One(sink))
}

/// Creates the directory that a file is to be in.
fn create_directory(file: &Path, mode: u32) -> io::Result<()> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.map_or(Ok(()), |directory| DirBuilder::new().recursive(true).mode(mode).create(directory))
}

impl Exporter for File {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        let (file, batch) = (self.clone(), batch.clone());
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || file.write(&batch)).await;
            written.unwrap_or_else(|error| Err(SendError::of_task(&error)))
        })
    }
}

impl File {
    fn write(&self, batch: &Batch) -> Result<Delivered, SendError> {
        let Some(mut memory) = WorkMemory::for_batch(batch) else { return Ok(Delivered::default()) };
        match &*self.target {
            Target::One(sink) => {
                let mut data = Vec::new();
                for part in batch.parts() {
                    self.form.encode(batch.signal(), &part.bytes, &mut data, &mut memory)?;
                }
                self.append(sink, &data).map_err(|error| failed(sink.path(), &error))?;
                Ok(Delivered::default())
            }
            Target::Each(groups) => self.write_each(groups, batch, &mut memory),
        }
    }

    fn append(&self, sink: &Sink, data: &[u8]) -> io::Result<()> {
        sink.write(data, self.start, self.form.is_lines(), self.rotation.as_ref(), self.now)
    }

    /// Writes what belongs to each file. What belongs to none is rejected, and told.
    fn write_each(&self, groups: &Groups, batch: &Batch, memory: &mut WorkMemory<'_>) -> Result<Delivered, SendError> {
        let mut files: BTreeMap<_, (Vec<u8>, usize)> = BTreeMap::new();
        let (mut rejected, mut message) = (0, String::new());
        for part in batch.parts() {
            let sorted = groups.sort(batch.signal(), part, memory);
            let Sorted { requests, left } = sorted.map_err(|NoMemory| memory.send_error())?;
            rejected += left;
            for (path, (request, items)) in requests {
                let (data, count) = files.entry(path).or_default();
                self.form.encode(batch.signal(), &request, data, memory)?;
                *count += items;
            }
        }
        if rejected > 0 {
            message = format!("no file for resources without a usable {}", groups.attribute());
        }
        for (path, (data, items)) in files {
            match groups.open(&path).and_then(|sink| self.append(&sink, &data)) {
                Err(error) if group::is_hopeless(&error) => {
                    rejected += items;
                    message = format!("cannot write to a file of a group: {error}");
                }
                written => written.map_err(|error| failed(&path, &error))?,
            }
        }
        Ok(Delivered { rejected: rejected as u64, message })
    }
}

/// The file does not take data. Time may help.
fn failed(path: &Path, error: &io::Error) -> SendError {
    SendError::local(format!("cannot write to {}: {error}", path.display()))
}
