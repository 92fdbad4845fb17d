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
//! *Does not* wait for the disk (fsync), and does not lock the file against other processes.

mod rotation;
mod sink;

#[cfg(test)]
mod tests;

use std::{
    fs,
    sync::Arc,
    time::{Duration, SystemTime},
};

use kubewake_config::model::{FileExporter, FileFormat, Retry, Rotation};

use self::sink::{Sink, Start};
use crate::{
    components::{BuildError, BuiltExporter},
    core::{Batch, Code, Delivered, Destination, ErrorClass, Exporter, SendError, SendFuture},
};

/// The first pause after a failure. Shorter than over a network: looking again costs nothing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct File {
    sink: Arc<Sink>,
    format: FileFormat,
    start: Start,
    rotation: Option<Rotation>,
    now: fn() -> SystemTime,
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
    let sink = Sink::at(&settings.path)
        .map_err(|error| BuildError(format!("cannot write to {}: {error}", settings.path.display())))?;
    // Created here if need be, and not emptied: a path that does not work must show before data comes.
    let opened = fs::OpenOptions::new().append(true).create(true).open(&settings.path);
    opened.map_err(|error| BuildError(format!("cannot write to {}: {error}", settings.path.display())))?;
    let start = match settings.append || settings.rotation.is_some() {
        true => Start::Keep,
        false => Start::Empty,
    };
    let exporter = File { sink, format: settings.format, start, rotation: settings.rotation.clone(), now };
    let retry = Retry { initial_interval: FIRST_PAUSE, ..Retry::default() };
    let destination = Destination::default();
    Ok(BuiltExporter { exporter: Arc::new(exporter), timeout: None, retry: Some(retry), queue: None, destination })
}

impl Exporter for File {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        let (file, batch) = (self.clone(), batch.clone());
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || file.write(&batch)).await;
            // The task fails only with a panic, or with the runtime itself.
            written.unwrap_or_else(|error| Err(local(error.to_string())))?;
            Ok(Delivered::default())
        })
    }
}

impl File {
    fn write(&self, batch: &Batch) -> Result<(), SendError> {
        let data = encode(self.format, batch)?;
        let lines = self.format == FileFormat::Json;
        let written = self.sink.write(&data, self.start, lines, self.rotation.as_ref(), self.now);
        written.map_err(|error| local(format!("cannot write to {}: {error}", self.sink.path().display())))
    }
}

/// Every request of a batch by itself: readers of lines have limits, and a batch may be large.
fn encode(format: FileFormat, batch: &Batch) -> Result<Vec<u8>, SendError> {
    let mut out = Vec::new();
    for part in batch.parts() {
        match format {
            FileFormat::Json => {
                kubewake_otlp::json::encode(batch.signal(), &part.bytes, &mut out)
                    .map_err(|error| malformed(&format!("cannot be written as JSON: {error}")))?;
                out.push(b'\n');
            }
            FileFormat::Proto => {
                let length = u32::try_from(part.bytes.len())
                    .map_err(|_| malformed("a request of 4 GiB or more has no length in this format"))?;
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(&part.bytes);
            }
        }
    }
    Ok(out)
}

/// The file does not take data. Time may help.
fn local(message: String) -> SendError {
    SendError { class: ErrorClass::Local, ..SendError::connection(message) }
}

/// There is no text for this data. Time does not help.
fn malformed(message: &str) -> SendError {
    SendError {
        code: Code::InvalidArgument,
        class: ErrorClass::Refused,
        message: message.to_owned().into(),
        retry_after: None,
        retryable: false,
    }
}
