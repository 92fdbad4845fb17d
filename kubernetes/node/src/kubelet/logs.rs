//! Container logs as a kubelet and containerd keep them: written, rotated, read and removed.
//!
//! *Guaranteed*: [names](layout), [entries](line) and [`rotation`] are those of a cluster, so that log
//! agents find what they expect. Each container has the log of its last run and of one before it. A following
//! reader ends when the run has ended. A full disk loses lines and stops no program. A node that restarts with
//! the same directory finds its logs again. *Not done*: logs do not outlive their pod.

mod layout;
pub(crate) mod line;
mod log_file;
mod maintenance;
mod output;
mod reader;
mod rotation;
mod run_log;

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard},
};

use bytes::Bytes;
use futures_util::{Stream as Items, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStatus;
use kubewake_apiserver::kubelet_client::LogRequest;
use kubewake_runtime::lock::Mutex;

pub use self::rotation::LogRotation;
pub(super) use self::{
    layout::{ContainerLogKey, PodLogKey},
    output::RunOutput,
};
use self::{
    layout::{LogLayout, create_dir, log_numbers, log_path},
    reader::LogReader,
    run_log::RunLog,
};

/// The reason why a log cannot be read. The messages are the kubelet's.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The container has not run.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    NotStarted {
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        container: String,
        /// The reason of the waiting state, such as `ContainerCreating`.
        reason: String,
    },
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        container: String,
    },
    /// The container has run, but its log was removed.
    #[error("the log of container {container:?} in pod {pod:?} is no longer stored")]
    NotStored {
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        container: String,
    },
    #[error("failed to read the log")]
    Read(#[from] io::Error),
}

/// The logs of a node. Clones share their state.
#[derive(Clone, Debug)]
pub struct ContainerLogStore(Arc<LogStoreState>);

#[derive(Debug)]
struct LogStoreState {
    layout: LogLayout,
    rules: LogRotation,
    /// The known logs, by pod uid and container name.
    known: Mutex<LogsByPod>,
}

type LogsByPod = HashMap<String, HashMap<String, ContainerLogs>>;

#[derive(Debug, Default)]
struct ContainerLogs {
    last: Option<Arc<RunLog>>,
    previous: Option<Arc<RunLog>>,
    /// The next unused restart count.
    next_number: i32,
}

impl ContainerLogs {
    /// Finds the logs that an earlier run of the node has left.
    fn scan_directory(dir: &Path, layout: &LogLayout) -> Self {
        let mut numbers = log_numbers(dir);
        let next_number = numbers.last().map_or(0, |last| last.saturating_add(1));
        let mut open = || {
            let path = log_path(dir, numbers.pop()?);
            let id = layout.run_id(&path);
            RunLog::open_finished(path, id).ok().map(Arc::new)
        };
        Self { last: open(), previous: open(), next_number }
    }

    /// The log of a run. After a restart of the node, the run of a log can be unknown; then the order decides.
    fn find(&self, run: &str, is_previous: bool) -> Option<Arc<RunLog>> {
        let mut all = self.last.iter().chain(&self.previous);
        let by_order = || if is_previous { self.previous.as_ref() } else { self.last.as_ref() };
        all.find(|log| log.id() == Some(run)).or_else(|| by_order().filter(|log| log.id().is_none())).cloned()
    }
}

impl ContainerLogStore {
    /// Creates the logs of a node below the root of its files.
    ///
    /// # Errors
    /// If the directories cannot be created.
    pub(super) fn create(host: &Path, rules: LogRotation) -> io::Result<Self> {
        let layout = LogLayout::new(host);
        layout.create()?;
        Ok(Self(Arc::new(LogStoreState { layout, rules, known: Mutex::default() })))
    }

    /// Begins the log of a run of a container. The log of the previous run is kept, earlier ones are removed.
    pub(super) fn begin(&self, run: &ContainerLogKey<'_>) -> io::Result<RunOutput> {
        let layout = &self.0.layout;
        let dir = layout.container_dir(&run.pod, run.container);
        let mut known = self.lock_logs();
        let container = self.container(&mut known, &run.pod, run.container);
        create_dir(&dir)?;
        // A node that was killed may not have recorded its last restart count.
        let number = run.number.max(container.next_number);
        let log = Arc::new(RunLog::create(log_path(&dir, number), run.id)?);
        if let Err(error) = layout.link(run, log.path()) {
            tracing::warn!(%error, pod = run.pod.pod, container = run.container, "failed to link the container's log");
        }
        container.next_number = number.saturating_add(1);
        let before = container.last.replace(Arc::clone(&log));
        if let Some(old) = std::mem::replace(&mut container.previous, before) {
            self.remove_log(&old);
        }
        Ok(RunOutput::new(log, number))
    }

    fn remove_log(&self, log: &RunLog) {
        log.remove();
        self.0.layout.remove_links(log.path());
    }

    /// Removes the logs of a pod.
    pub(super) fn remove(&self, pod: &PodLogKey<'_>) {
        self.lock_logs().remove(pod.uid);
        self.remove_dir(&self.0.layout.pod_dir(pod));
    }

    fn remove_dir(&self, dir: &Path) {
        if let Err(error) = fs::remove_dir_all(dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(directory = %dir.display(), %error, "failed to remove the logs of a deleted pod");
        }
        self.0.layout.remove_links(dir);
    }

    /// Removes the logs of all other pods. The pods are requested after the logs are listed; the other pods
    /// were deleted while the node did not run.
    pub(super) fn remove_others(&self, pods: impl FnOnce() -> HashSet<String>) {
        let dirs: Vec<(PathBuf, String)> = self.0.layout.pod_dirs();
        let pods = pods();
        dirs.iter().filter(|(_, uid)| !pods.contains(uid)).for_each(|(dir, _)| self.remove_dir(dir));
        self.0.layout.remove_dead_links();
    }

    /// The log of a container in chunks, in order. The status of the container tells which run is meant.
    ///
    /// # Errors
    /// If the container has not run, or has no previous run if that is requested.
    pub async fn open(
        &self,
        request: &LogRequest,
        status: Option<&ContainerStatus>,
    ) -> Result<impl Items<Item = Bytes> + Send + use<>, LogError> {
        let run = requested_run(request, status)?;
        let log = self
            .find(request, run)
            .ok_or_else(|| LogError::NotStored { pod: request.pod.clone(), container: request.container.clone() })?;
        let options = request.options.clone();
        // The search for the start may read many files.
        let reader = tokio::task::spawn_blocking(move || LogReader::new(log, &options, Timestamp::now()));
        let reader = reader.await.map_err(io::Error::other)??;
        Ok(stream::unfold(reader, LogReader::next))
    }

    fn find(&self, request: &LogRequest, run: &str) -> Option<Arc<RunLog>> {
        let pod = PodLogKey { namespace: &request.namespace, pod: &request.pod, uid: &request.uid };
        let mut known = self.lock_logs();
        if known.get(pod.uid).is_none_or(|known| !known.contains_key(&request.container))
            && !self.0.layout.container_dir(&pod, &request.container).is_dir()
        {
            // Unknown containers are not remembered, as they may never start.
            return None;
        }
        self.container(&mut known, &pod, &request.container).find(run, request.options.previous)
    }

    fn container<'a>(&self, known: &'a mut LogsByPod, pod: &PodLogKey<'_>, name: &str) -> &'a mut ContainerLogs {
        let layout = &self.0.layout;
        let found = || ContainerLogs::scan_directory(&layout.container_dir(pod, name), layout);
        known.entry(pod.uid.to_owned()).or_default().entry(name.to_owned()).or_insert_with(found)
    }

    fn lock_logs(&self) -> MutexGuard<'_, LogsByPod> {
        self.0.known.lock()
    }
}

/// The id of the requested run, by the kubelet's rules: while a container waits for its restart, its log and
/// its previous log are the same.
fn requested_run<'a>(request: &LogRequest, status: Option<&'a ContainerStatus>) -> Result<&'a str, LogError> {
    let LogRequest { pod, container, .. } = request;
    let (pod, container) = (pod.clone(), container.clone());
    let state = status.and_then(|status| status.state.as_ref());
    let ended = status.and_then(|status| status.last_state.as_ref()).and_then(|state| state.terminated.as_ref());
    let ended = ended.and_then(|ended| ended.container_id.as_deref());
    let run = if request.options.previous {
        ended.ok_or(LogError::NoPrevious { pod, container })?
    } else if let Some(ended) = state.and_then(|state| state.terminated.as_ref()) {
        ended.container_id.as_deref().or_else(|| status?.container_id.as_deref()).unwrap_or_default()
    } else if state.is_some_and(|state| state.running.is_some()) {
        status.and_then(|status| status.container_id.as_deref()).unwrap_or_default()
    } else if let Some(ended) = ended {
        ended
    } else {
        let reason = state.and_then(|state| state.waiting.as_ref()).and_then(|waiting| waiting.reason.clone());
        return Err(LogError::NotStarted { pod, container, reason: waiting_reason(reason) });
    };
    Ok(run.rsplit_once("://").map_or(run, |(_, id)| id))
}

/// The reason of the waiting state in the words of the kubelet's message.
fn waiting_reason(reason: Option<String>) -> String {
    match reason.as_deref() {
        Some("ErrImagePull") => "image can't be pulled".to_owned(),
        Some("ImagePullBackOff") => "trying and failing to pull image".to_owned(),
        _ => reason.unwrap_or_else(|| "ContainerCreating".to_owned()),
    }
}

#[cfg(test)]
mod tests;
