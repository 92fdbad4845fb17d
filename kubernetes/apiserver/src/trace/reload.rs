//! Reloads the file of `--tracing-config-file` when it, or a file that it names, changes. An unusable file is
//! refused as a whole, and the previous configuration stays in effect.

mod file_watch;

use std::{path::PathBuf, sync::Arc};

use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
};

use self::file_watch::ConfigFileWatch;
use super::{
    SpanPipeline, SpanSampling,
    config::{TracingConfigError, TracingConfiguration},
    export::{SpanExportTarget, SpanExporter, TraceResource},
};
use crate::client::{ServiceAddressResolver, TlsClientConfig};

/// Settings that are not in the file.
#[derive(Clone, Debug)]
pub struct TracingSettings {
    pub file: PathBuf,
    /// The groups that are trusted unless the file names them.
    pub trusted_groups: Vec<String>,
    pub services: Arc<dyn ServiceAddressResolver>,
    pub instance: String,
}

/// Exports spans to the destination in the file, and follows its changes.
#[derive(Debug)]
pub struct TracingReloader {
    pipeline: Arc<SpanPipeline>,
    look: Arc<Notify>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl TracingReloader {
    /// Reads the file and starts.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn start(settings: TracingSettings) -> Result<Self, TracingConfigError> {
        // Created before the file is read, so that no change is missed.
        let watch = ConfigFileWatch::new(&settings.file);
        let loaded = LoadedTracing::new(&settings)?;
        let pipeline = SpanPipeline::new(loaded.sampling);
        let resource = TraceResource { instance: settings.instance.clone() };
        let exporter = SpanExporter::start(loaded.target, &resource, Arc::clone(&pipeline));
        let look = Arc::new(Notify::new());
        let (stop, stopped) = oneshot::channel();
        let run = ReloadTask { settings, watch, files: loaded.files, exporter, pipeline: Arc::clone(&pipeline) };
        let task = tokio::spawn(run.run(Arc::clone(&look), stopped));
        Ok(Self { pipeline, look, stop, task })
    }

    pub fn pipeline(&self) -> &Arc<SpanPipeline> {
        &self.pipeline
    }

    /// Reads the file again, changed or not.
    pub fn reload(&self) {
        self.look.notify_one();
    }

    /// Exports the queued spans and ends.
    pub async fn stop(self) {
        // Without a receiver the task has ended already; it cannot have panicked.
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

struct LoadedTracing {
    target: SpanExportTarget,
    sampling: SpanSampling,
    files: Vec<PathBuf>,
}

impl LoadedTracing {
    fn new(settings: &TracingSettings) -> Result<Self, TracingConfigError> {
        let (config, trust): (TracingConfiguration, Option<TlsClientConfig>) =
            TracingConfiguration::load(&settings.file)?;
        let unusable = |error: http::Error| TracingConfigError::Invalid(vec![format!("invalid address: {error}")]);
        let target = SpanExportTarget::new(&config, trust, &settings.services).map_err(unusable)?;
        let files = config.files().cloned().collect();
        let trusted_groups = config.trusted_groups.unwrap_or_else(|| settings.trusted_groups.clone());
        let ratio_per_million = config.ratio_per_million;
        let joined_authentication = config.joined_authentication;
        let sampling = SpanSampling { ratio_per_million, trusted_groups, joined_authentication };
        Ok(Self { target, sampling, files })
    }
}

struct ReloadTask {
    settings: TracingSettings,
    watch: ConfigFileWatch,
    files: Vec<PathBuf>,
    exporter: SpanExporter,
    pipeline: Arc<SpanPipeline>,
}

impl ReloadTask {
    async fn run(mut self, look: Arc<Notify>, mut stopped: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                () = self.watch.wait_for_change(&self.settings.file, &self.files) => {}
                () = look.notified() => {}
                // Also when the sender was dropped.
                _ = &mut stopped => break,
            }
            self.reload();
        }
        self.exporter.stop().await;
    }

    fn reload(&mut self) {
        match LoadedTracing::new(&self.settings) {
            Ok(loaded) => {
                self.pipeline.set_sampling(loaded.sampling);
                self.exporter.redirect(loaded.target);
                self.files = loaded.files;
                tracing::info!(file = %self.settings.file.display(), "reloaded the tracing configuration");
            }
            Err(error) => {
                let error = error.to_string().replace("\n ", "");
                tracing::warn!(error, "failed to reload the tracing configuration, keeping the previous one");
            }
        }
    }
}

#[cfg(test)]
mod tests;
