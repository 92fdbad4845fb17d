//! Detection of changed files.
//!
//! The folders of the files are watched, since that is where a rename shows: editors replace files, and
//! Kubernetes swaps a symbolic link (`..data`) beside the files that it mounts. An event of the kernel only
//! triggers a check; a change is a change of the contents. As folders on some file systems report no events,
//! files are also checked every few seconds.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kubewake_runtime::lock::Mutex;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// The interval of checks without an event.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// A change often causes several events: wait until they are over.
const DEBOUNCE: Duration = Duration::from_millis(100);

pub(super) struct FileWatcher {
    /// `None` if the kernel's file notifications are not available.
    inner: Option<RecommendedWatcher>,
    notified: Arc<Notify>,
    /// The names of the files, shared with the event handler.
    file_names: Arc<Mutex<BTreeSet<OsString>>>,
    folders: BTreeSet<PathBuf>,
    last_seen: FileFingerprints,
}

/// A hash of each file's content; `None` for a file that cannot be read.
pub(super) type FileFingerprints = BTreeMap<PathBuf, Option<u64>>;

impl FileWatcher {
    /// Watches from the current state of `document` on: create it before you read the document.
    pub(super) fn new(document: &Path) -> Self {
        let notified = Arc::new(Notify::new());
        let tell = notified.clone();
        let file_names = Arc::new(Mutex::new(BTreeSet::new()));
        let wanted = file_names.clone();
        let inner = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if is_relevant(&event, &wanted.lock()) {
                tell.notify_one();
            }
        });
        let inner = inner
            .inspect_err(|error| tracing::warn!(%error, "failed to watch files; they are polled every few seconds"));
        let last_seen = fingerprint_files(&BTreeSet::from([document.to_owned()]));
        Self { inner: inner.ok(), notified, file_names, folders: BTreeSet::new(), last_seen }
    }

    /// Ends when the content of a file differs from the content when this last ended.
    pub(super) async fn wait_for_change(&mut self, document: &Path, more: impl Fn() -> BTreeSet<PathBuf>) {
        loop {
            let mut files = more();
            files.insert(document.to_owned());
            self.watch_folders(&files);
            let now = fingerprint_files(&files);
            // New files are no change: the component that refers to them has just read them.
            let before = std::mem::replace(&mut self.last_seen, now);
            if self.last_seen.iter().any(|(file, new)| before.get(file).is_some_and(|old| old != new)) {
                return;
            }
            if tokio::time::timeout(POLL_INTERVAL, self.notified.notified()).await.is_ok() {
                tokio::time::sleep(DEBOUNCE).await;
            }
        }
    }

    fn watch_folders(&mut self, files: &BTreeSet<PathBuf>) {
        let folder = |file: &PathBuf| match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let wanted: BTreeSet<PathBuf> = files.iter().map(folder).collect();
        *self.file_names.lock() = files.iter().filter_map(|file| file.file_name().map(OsString::from)).collect();
        let Some(inner) = &mut self.inner else { return };
        for gone in self.folders.difference(&wanted) {
            // The folder may be deleted too.
            let _ = inner.unwatch(gone);
        }
        for new in wanted.difference(&self.folders) {
            if let Err(error) = inner.watch(new, RecursiveMode::NonRecursive) {
                tracing::debug!(folder = %new.display(), %error, "failed to watch the folder");
            }
        }
        self.folders = wanted;
    }
}

/// Whether an event triggers a check: it concerns a file of that name, or a link such as Kubernetes' `..data`.
/// Other files in a busy folder may change all the time.
fn is_relevant(event: &notify::Result<notify::Event>, names: &BTreeSet<OsString>) -> bool {
    let Ok(event) = event else { return true };
    let ours = |path: &PathBuf| {
        path.file_name().is_none_or(|name| names.contains(name) || name.as_encoded_bytes().starts_with(b".."))
    };
    !event.kind.is_access() && (event.paths.is_empty() || event.paths.iter().any(ours))
}

pub(super) fn fingerprint_files(files: &BTreeSet<PathBuf>) -> FileFingerprints {
    files.iter().map(|file| (file.clone(), fingerprint_file(file))).collect()
}

fn fingerprint_file(file: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    std::fs::read(file).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}
