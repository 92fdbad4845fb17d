//! `debug`: shows what comes, for people.
//!
//! `basic` says a line for each batch, `normal` a line for each record, `detailed` every field, in the Collector's
//! layout; all three go where the log goes. `json` is ours: one object for each record, on standard output, to be read by
//! programs.
//!
//! *Guarantees.* What belongs together is written together: lines of two batches never mix. The text of a batch is shown while it is made and is
//! never there as a whole. A terminal or pipe that
//! does not take data holds up its own pipeline, and nothing else: writing happens off the runtime's threads.

mod detailed;
mod json;
mod lines;
mod normal;
mod sampler;
mod value;

#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    sync::Arc,
};

use kubewake_config::model::{DebugExporter, Verbosity};
use kubewake_otlp::{
    Signal,
    view::{self, ResourceEntry},
};

use self::{lines::Lines, sampler::Sampler};
use crate::{
    components::{BuildError, BuiltExporter},
    core::{Batch, Delivered, Destination, ErrorClass, Exporter, SendError, SendFuture, WorkMemory},
};

/// Where it shows things.
pub(crate) trait Output: Send + Sync {
    /// Does `write`, and lets nobody else show anything meanwhile.
    fn exclusively(&self, write: &mut dyn FnMut()) {
        write();
    }

    /// Says one line in the log.
    fn line(&self, text: &str);

    /// Writes a text of several lines where the log goes.
    ///
    /// # Errors
    ///
    /// If the stream does not take it.
    fn block(&self, text: &str) -> io::Result<()>;

    /// Writes whole lines for programs.
    ///
    /// # Errors
    ///
    /// If the stream does not take it.
    fn records(&self, lines: &[u8]) -> io::Result<()>;
}

/// The log, standard error and standard output.
struct Console;

impl Output for Console {
    fn exclusively(&self, write: &mut dyn FnMut()) {
        // This thread may lock them once more; the log goes to standard error, too.
        let _locks = (io::stderr().lock(), io::stdout().lock());
        write();
    }

    fn line(&self, text: &str) {
        tracing::info!("{text}");
    }

    fn block(&self, text: &str) -> io::Result<()> {
        io::stderr().lock().write_all(text.as_bytes())
    }

    fn records(&self, lines: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(lines)?;
        stdout.flush()
    }
}

struct Debug {
    verbosity: Verbosity,
    sampler: Sampler,
    output: Arc<dyn Output>,
}

/// Builds it. As in the Collector, it has no queue: a sender is answered when its data was shown.
///
/// # Errors
///
/// None; the type is that of every exporter.
pub(crate) fn build(settings: &DebugExporter) -> Result<BuiltExporter, BuildError> {
    build_with(settings, Arc::new(Console))
}

/// Builds one that shows things elsewhere.
///
/// # Errors
///
/// None; the type is that of every exporter.
pub(crate) fn build_with(settings: &DebugExporter, output: Arc<dyn Output>) -> Result<BuiltExporter, BuildError> {
    let sampler = Sampler::new(settings.sampling_initial, settings.sampling_thereafter);
    let exporter = Arc::new(Debug { verbosity: settings.verbosity, sampler, output });
    Ok(BuiltExporter { exporter, timeout: None, retry: None, queue: None, destination: Destination::default() })
}

impl Exporter for Debug {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        if !self.sampler.takes(tokio::time::Instant::now()) {
            return Box::pin(std::future::ready(Ok(Delivered::default())));
        }
        let (verbosity, output, batch) = (self.verbosity, self.output.clone(), batch.clone());
        Box::pin(async move {
            let shown = tokio::task::spawn_blocking(move || show(verbosity, &batch, &*output)).await;
            shown.unwrap_or_else(|error| Err(SendError::of_task(&error)))?;
            Ok(Delivered::default())
        })
    }
}

fn show(verbosity: Verbosity, batch: &Batch, output: &dyn Output) -> Result<(), SendError> {
    let Some(memory) = WorkMemory::for_batch(batch) else { return Ok(()) };
    let mut result = Ok(());
    let mut memory = Some(memory);
    output.exclusively(&mut || {
        if verbosity != Verbosity::Json {
            output.line(&summary(batch));
        }
        let Some(memory) = memory.take() else { return };
        result = match verbosity {
            Verbosity::Basic => Ok(()),
            Verbosity::Normal => normal::show(batch, Lines::new(output, memory)),
            Verbosity::Detailed => detailed::show(batch, Lines::new(output, memory)),
            Verbosity::Json => json::show(batch, output, memory),
        };
    });
    result
}

/// A stream of this machine does not take data. Time may help.
fn local(message: String) -> SendError {
    SendError { class: ErrorClass::Local, ..SendError::connection(message) }
}

/// The one line of a batch, in the Collector's words.
fn summary(batch: &Batch) -> String {
    let (entries, items) = (resources(batch).count(), batch.items());
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
