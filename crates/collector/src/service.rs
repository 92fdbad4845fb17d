//! A collector as a process has it: a document on disk, loaded, watched, reloaded, and stopped.
//!
//! *Guarantees.* A document that does not load, or whose components cannot be built, changes nothing: the one before
//! stays in force, and the refusal with its reasons is in the log, in the metrics and in `/status`. Files that the
//! document refers to (certificates, tokens, `${file:…}`) are part of it: a change in one of them is a reload.

mod console;
mod end_report;
mod watcher;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use kubewake_config::{Document, Errors, Loaded, Problem, SystemSources, fingerprint, model::Logs, mounted};
use tokio::sync::{Mutex as AsyncMutex, watch};

use self::{
    console::Console,
    end_report::Losses,
    watcher::{Prints, Watcher, prints},
};
pub use self::{
    console::Endpoints,
    end_report::{EndReport, Lost},
};
use crate::{
    components,
    engine::{ApplyError, Engine, Options},
    telemetry::{Phase, Process, RefusedRevision, Revision, Telemetry},
};

/// When a document that asks for what cannot be had at the moment is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Why a document is not in force.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// What it says is wrong.
    #[error("{0}")]
    Document(#[from] Errors),
    /// What it says cannot be had here and now: a busy port, a certificate that is not there.
    #[error("{}", lines(.0))]
    Apply(Vec<ApplyError>),
}

fn lines(errors: &[ApplyError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl LoadError {
    /// Every reason by itself, on one line.
    fn reasons(&self) -> Vec<String> {
        match self {
            Self::Read { .. } => vec![self.to_string()],
            Self::Document(errors) => errors.problems().iter().map(reason).collect(),
            Self::Apply(errors) => errors.iter().map(ToString::to_string).collect(),
        }
    }
}

fn reason(problem: &Problem) -> String {
    let path = if problem.place().is_empty() { "document" } else { problem.place() };
    format!("line {}: {path}: {}", problem.position.line, problem.message)
}

/// Reads and checks a document, and changes nothing.
pub fn check(path: &Path) -> Result<Loaded, LoadError> {
    named(path, &read(path)?)
}

/// The document of a file, which problems are shown with.
fn named(path: &Path, text: &str) -> Result<Loaded, LoadError> {
    let file = path.display().to_string();
    let mut loaded = kubewake_config::load(text, &SystemSources).map_err(|errors| errors.in_file(&file))?;
    loaded.warnings = loaded.warnings.into_iter().map(|warning| warning.in_file(&file)).collect();
    Ok(loaded)
}

fn read(path: &Path) -> Result<String, LoadError> {
    fs::read_to_string(mounted(path))
        .map_err(|source| LoadError::Read { path: path.to_owned(), source: Arc::new(source) })
}

/// A running collector.
pub struct Service {
    path: PathBuf,
    engine: Arc<Engine>,
    telemetry: Arc<Telemetry>,
    /// One change at a time; what serves metrics and health is part of it.
    console: AsyncMutex<Console>,
    logs: watch::Sender<Logs>,
    watcher: AsyncMutex<Watcher>,
    /// The files that the document in force refers to.
    watched: Mutex<BTreeSet<PathBuf>>,
    /// What the document and its files held when they were last loaded or refused.
    tried: Mutex<Prints>,
    /// The last attempt was refused for something that may pass.
    may_pass: AtomicBool,
}

impl Service {
    /// Loads the document and runs it. The warnings are for whoever started it.
    pub async fn start(path: &Path, options: Options) -> Result<(Arc<Self>, Vec<Problem>), LoadError> {
        let watcher = Watcher::new(path);
        let held = prints(&BTreeSet::from([path.to_owned()]));
        let text = read(path)?;
        let loaded = named(path, &text)?;
        let engine = Engine::new(options);
        let process = Process::start(env!("CARGO_PKG_VERSION"), &loaded.document.service.telemetry.resource);
        let telemetry = Telemetry::new(engine.registry().clone(), process);
        let service = Arc::new(Self {
            path: path.to_owned(),
            console: AsyncMutex::new(Console::new(telemetry.clone())),
            engine,
            telemetry,
            logs: watch::Sender::default(),
            watcher: AsyncMutex::new(watcher),
            watched: Mutex::default(),
            tried: Mutex::default(),
            may_pass: AtomicBool::new(false),
        });
        let warnings = loaded.warnings.clone();
        let mut console = service.console.lock().await;
        service.apply(&mut console, loaded, &text).await?;
        service.remember(held);
        drop(console);
        Ok((service, warnings))
    }

    /// The engine that runs.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Where metrics and health are served.
    pub async fn endpoints(&self) -> Endpoints {
        self.console.lock().await.endpoints()
    }

    /// The settings of the log, now and whenever they change.
    pub fn logs(&self) -> watch::Receiver<Logs> {
        self.logs.subscribe()
    }

    /// What is known about it.
    pub fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// Loads the document again. A refusal is logged, counted and shown; what runs goes on.
    pub async fn reload(&self) -> Result<(), LoadError> {
        // Before the document is read: of two reloads the later one has the later document.
        let mut console = self.console.lock().await;
        self.reload_with(&mut console).await
    }

    async fn reload_with(&self, console: &mut Console) -> Result<(), LoadError> {
        let held = self.contents();
        let text = read(&self.path);
        let result = match &text {
            Ok(text) => self.load(console, text).await,
            Err(error) => Err(error.clone()),
        };
        if let Err(error) = &result {
            self.record_refusal(error, text.as_deref().unwrap_or_default());
        }
        self.may_pass.store(matches!(result, Err(LoadError::Apply(_))), Ordering::Relaxed);
        self.remember(held);
        result
    }

    /// Loads the document again because something changed, unless somebody who asked for it has had the change, or its
    /// refusal, already.
    async fn take_up_change(&self) -> Result<(), LoadError> {
        let mut console = self.console.lock().await;
        if self.contents() == *self.tried.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(());
        }
        tracing::info!(file = %self.path.display(), "the configuration or one of its files changed");
        self.reload_with(&mut console).await
    }

    /// What the document and its files hold now.
    fn contents(&self) -> Prints {
        let mut files = self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        files.insert(self.path.clone());
        prints(&files)
    }

    /// Notes what was held before it was tried. Files that were not known by then have just been read.
    fn remember(&self, held: Prints) {
        let mut now = self.contents();
        for (file, print) in &mut now {
            if let Some(before) = held.get(file) {
                *print = *before;
            }
        }
        *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    async fn load(&self, console: &mut Console, text: &str) -> Result<(), LoadError> {
        let loaded = kubewake_config::load(text, &SystemSources)?;
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{}: {}", warning.place(), warning.message));
        self.apply(console, loaded, text).await
    }

    /// Reloads whenever the document or one of its files changes, and now and then if it was refused for something that
    /// may pass, such as a busy port. It never ends.
    pub async fn watch(&self) {
        let mut watcher = self.watcher.lock().await;
        loop {
            let files = || self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let changed = watcher.changed(&self.path, files);
            let patience = if self.may_pass.load(Ordering::Relaxed) { TRY_AGAIN } else { Duration::MAX };
            // Its error is logged and shown where one looks.
            let _ = match tokio::time::timeout(patience, changed).await {
                Ok(()) => self.take_up_change().await,
                Err(_) => {
                    tracing::info!("the configuration that was refused is tried again");
                    self.reload().await
                }
            };
        }
    }

    /// Closes the receivers, delivers what is held as far as time allows, and ends. Says what was lost meanwhile.
    pub async fn stop(&self) -> EndReport {
        let before = Losses::so_far(&self.telemetry);
        self.telemetry.update(|info| info.phase = Phase::Draining);
        self.engine.stop().await;
        let report = before.until(Losses::so_far(&self.telemetry));
        self.console.lock().await.stop().await;
        report
    }

    async fn apply(&self, console: &mut Console, loaded: Loaded, text: &str) -> Result<(), LoadError> {
        let Loaded { document, files, .. } = loaded;
        let files = referred(&document, files);
        // Also if it is refused: what it misses may be there in a moment.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).extend(files.iter().cloned());
        let claims = self.engine.sockets().claims();
        let change = console.prepare(&document, &claims);
        let changed = match change {
            // The engine is asked only when the rest can be had, since it cannot be undone.
            Ok(change) => self.engine.apply_beside(&document, &claims).await.map(|()| change),
            Err(mut errors) => {
                errors.extend(self.engine.check(&document, &claims).await);
                Err(errors)
            }
        };
        let change = changed.map_err(LoadError::Apply)?;
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = files;
        self.logs.send_replace(document.service.telemetry.logs);
        // Before there are new servers: the first that they say must be true.
        let number = self.show_success(text);
        console.commit(change);
        // Last, so that whoever sees the count sees the rest too.
        self.engine.registry().reloads_applied.store(number, Ordering::Release);
        Ok(())
    }

    /// Shows the document as the one that is in force, and says which one it is since the start.
    fn show_success(&self, text: &str) -> u64 {
        let number = self.engine.registry().reloads_applied.load(Ordering::Relaxed) + 1;
        let revision = Revision { hash: fingerprint(text), number, loaded_at: SystemTime::now() };
        let pipelines = self.engine.overview().pipelines.clone();
        self.telemetry.update(|info| {
            info.phase = Phase::Ready;
            info.revision = Some(revision.clone());
            info.refused = None;
            info.pipelines = pipelines.clone();
        });
        tracing::info!(revision = number, pipelines = pipelines.len(), "the configuration is in force");
        number
    }

    fn record_refusal(&self, error: &LoadError, text: &str) {
        let reasons = error.reasons();
        tracing::error!(file = %self.path.display(), reasons = ?reasons,
            "the new configuration is refused; the one before stays in force");
        let refused = RefusedRevision { hash: fingerprint(text), refused_at: SystemTime::now(), reasons };
        self.telemetry.update(|info| info.refused = Some(refused.clone()));
        self.engine.registry().reloads_refused.fetch_add(1, Ordering::Release);
    }
}

/// All files whose change is a change of the document.
fn referred(document: &Document, mut files: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    files.extend(document.receivers.values().flat_map(components::receiver_files));
    files.extend(document.exporters.values().flat_map(components::exporter_files));
    files.extend(document.extensions.values().flat_map(components::extension_files));
    files
}

#[cfg(test)]
mod tests;
