//! `debug`: prints received data, for people.
//!
//! `basic` prints a line for each batch, `normal` a line for each record, `detailed` every field, in the
//! Collector's layout; all three go where the log goes. `json` is an addition of ours: one object for each
//! record, on standard output, for programs.
//!
//! *Guaranteed*: the text of a batch is written without interruption: lines of two batches never mix. It is
//! written while it is generated and never held as a whole. A terminal or pipe that blocks holds up its own
//! pipeline, and nothing else: writing happens off the runtime's threads.

mod detailed;
mod json;
mod message_sampler;
mod normal;
mod text_output;
mod value;

#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    sync::Arc,
};

use kubewake_config::model::{DebugExporter, DebugVerbosity};
use kubewake_otlp::{
    Signal,
    view::{self, ResourceEntry},
};

use self::{message_sampler::MessageSampler, text_output::TextLines};
use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{Batch, DestinationLabels, ErrorClass, Exporter, SendError, SendFuture, SendSuccess, WorkMemory},
};

pub(crate) trait DebugOutput: Send + Sync {
    /// Calls `write` with the output locked for everybody else.
    fn with_lock(&self, write: &mut dyn FnMut()) {
        write();
    }

    /// Logs one line.
    fn log_line(&self, text: &str);

    /// Writes a text of several lines to the destination of the log.
    ///
    /// # Errors
    ///
    /// If the stream cannot be written.
    fn write_text(&self, text: &str) -> io::Result<()>;

    /// Writes whole lines of JSON.
    ///
    /// # Errors
    ///
    /// If the stream cannot be written.
    fn write_records(&self, lines: &[u8]) -> io::Result<()>;
}

/// The log, standard error and standard output.
struct StandardStreams;

impl DebugOutput for StandardStreams {
    fn with_lock(&self, write: &mut dyn FnMut()) {
        // This thread may lock the streams again; the log goes to standard error, too.
        let _locks = (io::stderr().lock(), io::stdout().lock());
        write();
    }

    fn log_line(&self, text: &str) {
        tracing::info!("{text}");
    }

    fn write_text(&self, text: &str) -> io::Result<()> {
        io::stderr().lock().write_all(text.as_bytes())
    }

    fn write_records(&self, lines: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(lines)?;
        stdout.flush()
    }
}

struct DebugWriter {
    verbosity: DebugVerbosity,
    sampler: MessageSampler,
    output: Arc<dyn DebugOutput>,
}

pub(crate) fn prepare(settings: &DebugExporter, _: &ExporterContext<'_>) -> Result<PreparedExporter, BuildError> {
    build(settings).map(PreparedExporter::new)
}

/// Builds the exporter. As in the Collector it has no queue: a sender is answered when its data was printed.
///
/// # Errors
///
/// None; the signature is that of every exporter.
fn build(settings: &DebugExporter) -> Result<ExporterParts, BuildError> {
    build_with_output(settings, Arc::new(StandardStreams))
}

/// Builds an exporter with another output.
///
/// # Errors
///
/// None; the signature is that of every exporter.
pub(crate) fn build_with_output(
    settings: &DebugExporter,
    output: Arc<dyn DebugOutput>,
) -> Result<ExporterParts, BuildError> {
    let sampler = MessageSampler::new(settings.sampling_initial, settings.sampling_thereafter);
    let exporter = Arc::new(DebugWriter { verbosity: settings.verbosity, sampler, output });
    Ok(ExporterParts { exporter, timeout: None, retry: None, queue: None, destination: DestinationLabels::default() })
}

impl Exporter for DebugWriter {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        if !self.sampler.should_show(tokio::time::Instant::now()) {
            return Box::pin(std::future::ready(Ok(SendSuccess::default())));
        }
        let verbosity = self.verbosity;
        let output = self.output.clone();
        let batch = batch.clone();
        Box::pin(async move {
            let shown = tokio::task::spawn_blocking(move || write_batch(verbosity, &batch, &*output)).await;
            shown.unwrap_or_else(|error| Err(SendError::from_join_error(&error)))?;
            Ok(SendSuccess::default())
        })
    }
}

fn write_batch(verbosity: DebugVerbosity, batch: &Batch, output: &dyn DebugOutput) -> Result<(), SendError> {
    let Some(memory) = WorkMemory::for_batch(batch) else { return Ok(()) };
    let mut result = Ok(());
    let mut memory = Some(memory);
    output.with_lock(&mut || {
        if verbosity != DebugVerbosity::Json {
            output.log_line(&summary(batch));
        }
        let Some(memory) = memory.take() else { return };
        result = match verbosity {
            DebugVerbosity::Basic => Ok(()),
            DebugVerbosity::Normal => normal::write_batch(batch, TextLines::new(output, memory)),
            DebugVerbosity::Detailed => detailed::write_batch(batch, TextLines::new(output, memory)),
            DebugVerbosity::Json => json::write_batch(batch, output, memory),
        };
    });
    result
}

/// A local stream cannot be written, which may pass.
fn local_error(message: String) -> SendError {
    SendError { class: ErrorClass::Local, ..SendError::connection(message) }
}

/// The summary line of a batch, in the Collector's words.
fn summary(batch: &Batch) -> String {
    let entries = resources(batch).count();
    let items = batch.items();
    match batch.signal() {
        Signal::Traces => format!(r#"Traces {{"resource spans": {entries}, "spans": {items}}}"#),
        Signal::Logs => format!(r#"Logs {{"resource logs": {entries}, "log records": {items}}}"#),
        Signal::Metrics => {
            let scopes = resources(batch).flat_map(|entry| entry.scopes());
            let metrics: usize = scopes.map(|scope| scope.metrics().count()).sum();
            format!(r#"Metrics {{"resource metrics": {entries}, "metrics": {metrics}, "data points": {items}}}"#)
        }
    }
}

/// The resource entries of all requests in a batch.
fn resources(batch: &Batch) -> impl Iterator<Item = ResourceEntry<'_>> {
    batch.parts().iter().flat_map(|part| view::resources(&part.bytes))
}
