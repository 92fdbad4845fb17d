//! The file of `--tracing-config-file` while the server runs: a change of it, or of a file that it names, is taken up without a
//! restart. One that cannot be used is refused as a whole; what was in force before goes on.

mod watch;

use std::{path::PathBuf, sync::Arc};

use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
};

use self::watch::Watch;
use super::{
    Pipeline, Sampling,
    config::{Config, Error},
    export::{Exporter, Resource, Target},
};
use crate::client::{Services, Trust};

/// What the file does not say.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file.
    pub file: PathBuf,
    /// The groups that are trusted unless the file names them.
    pub trusted_groups: Vec<String>,
    /// Finds Services.
    pub services: Arc<dyn Services>,
    /// `service.instance.id`
    pub instance: String,
}

/// Spans on their way to where the file says.
#[derive(Debug)]
pub struct Tracing {
    pipeline: Arc<Pipeline>,
    look: Arc<Notify>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Tracing {
    /// Reads the file and begins.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn start(settings: Settings) -> Result<Self, Error> {
        // Made before the file is read, so that no change falls in between.
        let watch = Watch::new(&settings.file);
        let loaded = Loaded::new(&settings)?;
        let pipeline = Pipeline::new(loaded.sampling);
        let resource = Resource { instance: settings.instance.clone() };
        let exporter = Exporter::start(loaded.target, &resource, Arc::clone(&pipeline));
        let look = Arc::new(Notify::new());
        let (stop, stopped) = oneshot::channel();
        let run = Run { settings, watch, files: loaded.files, exporter, pipeline: Arc::clone(&pipeline) };
        let task = tokio::spawn(run.run(Arc::clone(&look), stopped));
        Ok(Self { pipeline, look, stop, task })
    }

    /// Where spans are to be put.
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// Reads the file again, changed or not.
    pub fn reload(&self) {
        self.look.notify_one();
    }

    /// Sends what waits and ends.
    pub async fn stop(self) {
        // Without a receiver it has ended already; it cannot have panicked.
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// A file that can be used.
struct Loaded {
    target: Target,
    sampling: Sampling,
    /// The files that it names.
    files: Vec<PathBuf>,
}

impl Loaded {
    fn new(settings: &Settings) -> Result<Self, Error> {
        let (config, trust): (Config, Option<Trust>) = Config::load(&settings.file)?;
        let unusable = |error: http::Error| Error::Invalid(vec![format!("the address cannot be used: {error}")]);
        let target = Target::new(&config, trust, &settings.services).map_err(unusable)?;
        let files = config.files().cloned().collect();
        let trusted_groups = config.trusted_groups.unwrap_or_else(|| settings.trusted_groups.clone());
        let (ratio_per_million, joined_authentication) = (config.ratio_per_million, config.joined_authentication);
        let sampling = Sampling { ratio_per_million, trusted_groups, joined_authentication };
        Ok(Self { target, sampling, files })
    }
}

struct Run {
    settings: Settings,
    watch: Watch,
    files: Vec<PathBuf>,
    exporter: Exporter,
    pipeline: Arc<Pipeline>,
}

impl Run {
    async fn run(mut self, look: Arc<Notify>, mut stopped: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                () = self.watch.changed(&self.settings.file, &self.files) => {}
                () = look.notified() => {}
                // Also when whoever could say so is gone.
                _ = &mut stopped => break,
            }
            self.reload();
        }
        self.exporter.stop().await;
    }

    fn reload(&mut self) {
        match Loaded::new(&self.settings) {
            Ok(loaded) => {
                self.pipeline.set_sampling(loaded.sampling);
                self.exporter.redirect(loaded.target);
                self.files = loaded.files;
                tracing::info!(file = %self.settings.file.display(), "the tracing configuration was read again");
            }
            Err(error) => {
                let error = error.to_string().replace("\n ", "");
                tracing::warn!(error, "the new tracing configuration is refused, the old one goes on");
            }
        }
    }
}

#[cfg(test)]
mod tests;
