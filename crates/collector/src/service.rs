//! A collector process: its document is loaded from disk, watched and reloaded.
//!
//! *Guarantees.* A document that does not load, or whose components cannot be built, changes nothing: the
//! previous one stays in force, and the refusal with its reasons is in the log, in the metrics and in
//! `/status`. Files that the document refers to (certificates, tokens, `${file:…}`) are part of it: a change in
//! one of them is a reload.

mod file_watcher;
mod system_sources;
mod telemetry_servers;
mod termination_report;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use kubewake_config::{
    CollectorDocument, ConfigSources, DocumentErrors, DocumentProblem, LoadedDocument, fingerprint,
    model::{ExporterConfig, ExtensionConfig, LogsConfig, ReceiverConfig},
};
use kubewake_runtime::lock::Mutex;
use tokio::sync::{Mutex as AsyncMutex, watch};

use self::{
    file_watcher::{FileFingerprints, FileWatcher, fingerprint_files},
    telemetry_servers::TelemetryServers,
    termination_report::LossTotals,
};
pub use self::{
    system_sources::SystemSources,
    telemetry_servers::TelemetryEndpoints,
    termination_report::{DroppedItems, TERMINATION_LOG, TerminationReport},
};
use crate::{
    engine::{ApplyError, Engine, EngineOptions},
    telemetry::{CollectorPhase, LoadedRevision, ProcessIdentity, RefusedRevision, TelemetryState},
};

/// The retry interval of a document that was refused for a condition that may pass.
const RELOAD_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Why a document is not in force.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    #[error("failed to read {}: {source}", path.display())]
    Read { path: PathBuf, source: Arc<io::Error> },
    /// The document is invalid.
    #[error("{0}")]
    Document(#[from] DocumentErrors),
    /// The document cannot be applied here and now: a busy port, a missing certificate.
    #[error("{}", join_errors(.0))]
    Apply(Vec<ApplyError>),
}

fn join_errors(errors: &[ApplyError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl LoadError {
    /// Whether the same document may be applied later. One with connectors may not.
    fn is_transient(&self) -> bool {
        match self {
            Self::Apply(errors) => !errors.iter().any(|error| error.path.starts_with("connectors::")),
            Self::Read { .. } | Self::Document(_) => false,
        }
    }

    /// Every reason separately, on one line each.
    fn reasons(&self) -> Vec<String> {
        match self {
            Self::Read { .. } => vec![self.to_string()],
            Self::Document(errors) => errors.problems().iter().map(describe_problem).collect(),
            Self::Apply(errors) => errors.iter().map(ToString::to_string).collect(),
        }
    }
}

fn describe_problem(problem: &DocumentProblem) -> String {
    let path = if problem.display_path().is_empty() { "document" } else { problem.display_path() };
    format!("line {}: {path}: {}", problem.position.line, problem.message)
}

/// Access to the environment and files, for as long as a collector runs.
pub type SharedSources = Arc<dyn ConfigSources + Send + Sync>;

/// Reads and checks a document without applying it.
pub fn check(path: &Path, sources: &dyn ConfigSources) -> Result<LoadedDocument, LoadError> {
    parse_document(path, &read_document(path)?, sources)
}

/// Parses the document of a file, and shows problems with its path.
fn parse_document(path: &Path, text: &str, sources: &dyn ConfigSources) -> Result<LoadedDocument, LoadError> {
    let file = path.display().to_string();
    let mut loaded = kubewake_config::load(text, sources).map_err(|errors| errors.in_file(&file))?;
    loaded.warnings = loaded.warnings.into_iter().map(|warning| warning.in_file(&file)).collect();
    Ok(loaded)
}

fn read_document(path: &Path) -> Result<String, LoadError> {
    fs::read_to_string(path).map_err(|source| LoadError::Read { path: path.to_owned(), source: Arc::new(source) })
}

pub struct CollectorService {
    path: PathBuf,
    sources: SharedSources,
    engine: Arc<Engine>,
    telemetry: Arc<TelemetryState>,
    /// Serializes changes, which include the servers of metrics and health.
    telemetry_servers: AsyncMutex<TelemetryServers>,
    logs: watch::Sender<LogsConfig>,
    watcher: AsyncMutex<FileWatcher>,
    /// The files that the document in force refers to.
    watched: Mutex<BTreeSet<PathBuf>>,
    /// The contents of the document and its files at the last attempt to load them.
    last_attempted: Mutex<FileFingerprints>,
    /// Whether the last attempt failed for a condition that may pass.
    is_transient: AtomicBool,
}

impl CollectorService {
    /// Loads the document and runs it. The warnings are for the caller to show.
    pub async fn start(
        path: &Path,
        sources: SharedSources,
        options: EngineOptions,
    ) -> Result<(Arc<Self>, Vec<DocumentProblem>), LoadError> {
        let watcher = FileWatcher::new(path);
        let held = fingerprint_files(&BTreeSet::from([path.to_owned()]));
        let text = read_document(path)?;
        let loaded = parse_document(path, &text, &*sources)?;
        let engine = Engine::new(options);
        let process = ProcessIdentity::start(env!("CARGO_PKG_VERSION"), &loaded.document.service.telemetry.resource);
        let telemetry = TelemetryState::new(engine.registry().clone(), process);
        let service = Arc::new(Self {
            path: path.to_owned(),
            sources,
            telemetry_servers: AsyncMutex::new(TelemetryServers::new(telemetry.clone())),
            engine,
            telemetry,
            logs: watch::Sender::default(),
            watcher: AsyncMutex::new(watcher),
            watched: Mutex::default(),
            last_attempted: Mutex::default(),
            is_transient: AtomicBool::new(false),
        });
        let warnings = loaded.warnings.clone();
        let mut console = service.telemetry_servers.lock().await;
        service.apply(&mut console, loaded, &text).await?;
        service.record_attempt(held);
        drop(console);
        Ok((service, warnings))
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub async fn endpoints(&self) -> TelemetryEndpoints {
        self.telemetry_servers.lock().await.endpoints()
    }

    /// The logging settings, now and whenever they change.
    pub fn logs(&self) -> watch::Receiver<LogsConfig> {
        self.logs.subscribe()
    }

    pub fn telemetry(&self) -> &Arc<TelemetryState> {
        &self.telemetry
    }

    /// Loads the document again. A refusal is logged, counted and shown; the previous document stays in force.
    pub async fn reload(&self) -> Result<(), LoadError> {
        // Locked before the document is read, so that the later of two reloads applies the later document.
        let mut console = self.telemetry_servers.lock().await;
        self.reload_with(&mut console).await
    }

    async fn reload_with(&self, console: &mut TelemetryServers) -> Result<(), LoadError> {
        let held = self.fingerprints();
        let text = read_document(&self.path);
        let result = match &text {
            Ok(text) => self.load(console, text).await,
            Err(error) => Err(error.clone()),
        };
        if let Err(error) = &result {
            self.record_refusal(error, text.as_deref().unwrap_or_default());
        }
        self.is_transient.store(result.as_ref().is_err_and(LoadError::is_transient), Ordering::Relaxed);
        self.record_attempt(held);
        result
    }

    /// Loads the document again after a change, unless another reload has applied or refused the same contents
    /// already.
    async fn reload_if_changed(&self) -> Result<(), LoadError> {
        let mut console = self.telemetry_servers.lock().await;
        if self.fingerprints() == *self.last_attempted.lock() {
            return Ok(());
        }
        tracing::info!(file = %self.path.display(), "the configuration or one of its files changed");
        self.reload_with(&mut console).await
    }

    /// The current fingerprints of the document and its files.
    fn fingerprints(&self) -> FileFingerprints {
        let mut files = self.watched.lock().clone();
        files.insert(self.path.clone());
        fingerprint_files(&files)
    }

    /// Records the contents from before the attempt. Files that were unknown by then have just been read.
    fn record_attempt(&self, held: FileFingerprints) {
        let mut now = self.fingerprints();
        for (file, print) in &mut now {
            if let Some(before) = held.get(file) {
                *print = *before;
            }
        }
        *self.last_attempted.lock() = now;
    }

    async fn load(&self, console: &mut TelemetryServers, text: &str) -> Result<(), LoadError> {
        let loaded = kubewake_config::load(text, &*self.sources)?;
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{}: {}", warning.display_path(), warning.message));
        self.apply(console, loaded, text).await
    }

    /// Reloads whenever the document or one of its files changes, and periodically while it is refused for a
    /// condition that may pass, such as a busy port. It never ends.
    pub async fn watch(&self) {
        let mut watcher = self.watcher.lock().await;
        loop {
            let files = || self.watched.lock().clone();
            let changed = watcher.wait_for_change(&self.path, files);
            let patience =
                if self.is_transient.load(Ordering::Relaxed) { RELOAD_RETRY_INTERVAL } else { Duration::MAX };
            // `reload` logs and shows the error.
            let _ = match tokio::time::timeout(patience, changed).await {
                Ok(()) => self.reload_if_changed().await,
                Err(_) => {
                    tracing::info!("retrying the refused configuration");
                    self.reload().await
                }
            };
        }
    }

    /// Closes the receivers, drains within the drain limit, and reports the losses.
    pub async fn stop(&self) -> TerminationReport {
        let before = LossTotals::snapshot(&self.telemetry);
        self.telemetry.update(|info| info.phase = CollectorPhase::Draining);
        self.engine.stop().await;
        let report = before.report_until(LossTotals::snapshot(&self.telemetry));
        self.telemetry_servers.lock().await.stop().await;
        report
    }

    async fn apply(&self, console: &mut TelemetryServers, loaded: LoadedDocument, text: &str) -> Result<(), LoadError> {
        let LoadedDocument { document, files, .. } = loaded;
        let files = referenced_files(&document, files);
        // Also if it is refused, since a missing file may appear.
        self.watched.lock().extend(files.iter().cloned());
        let claims = Arc::new(self.engine.sockets().claims());
        let change = console.prepare(&document, &claims);
        let changed = match change {
            // Last, because the engine cannot undo a change.
            Ok(change) => self.engine.apply_with_claims(&document, &claims).await.map(|()| change),
            Err(mut errors) => {
                errors.extend(self.engine.check(&document, &claims).await);
                Err(errors)
            }
        };
        let change = changed.map_err(LoadError::Apply)?;
        *self.watched.lock() = files;
        self.logs.send_replace(document.service.telemetry.logs);
        // Published before new servers start, so that their first response is correct.
        let number = self.publish_revision(text);
        console.commit(change);
        // Last, so that a reader of this counter sees everything else too.
        self.engine.registry().reloads_applied.store(number, Ordering::Release);
        Ok(())
    }

    /// Publishes the document in force, and returns its revision number since the start.
    fn publish_revision(&self, text: &str) -> u64 {
        let number = self.engine.registry().reloads_applied.load(Ordering::Relaxed) + 1;
        let revision = LoadedRevision { hash: fingerprint(text), number, loaded_at: SystemTime::now() };
        let pipelines = self.engine.overview().pipelines.clone();
        self.telemetry.update(|info| {
            info.phase = CollectorPhase::Ready;
            info.revision = Some(revision.clone());
            info.refused = None;
            info.pipelines = pipelines.clone();
        });
        tracing::info!(revision = number, pipelines = pipelines.len(), "the configuration is applied");
        number
    }

    fn record_refusal(&self, error: &LoadError, text: &str) {
        let reasons = error.reasons();
        tracing::error!(file = %self.path.display(), reasons = ?reasons,
            "the new configuration is refused; the previous configuration stays in use");
        let refused = RefusedRevision { hash: fingerprint(text), refused_at: SystemTime::now(), reasons };
        self.telemetry.update(|info| info.refused = Some(refused.clone()));
        self.engine.registry().reloads_refused.fetch_add(1, Ordering::Release);
    }
}

/// All files whose change is a change of the document.
fn referenced_files(document: &CollectorDocument, mut files: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    files.extend(document.receivers.values().flat_map(ReceiverConfig::files));
    files.extend(document.exporters.values().flat_map(ExporterConfig::files));
    files.extend(document.extensions.values().flat_map(ExtensionConfig::files));
    files
}

#[cfg(test)]
mod tests;
