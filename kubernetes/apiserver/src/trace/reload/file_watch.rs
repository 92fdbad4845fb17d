//! Detects changes of the content of files.
//!
//! Directories are watched, since that is where a rename shows: editors replace files, and Kubernetes swaps a
//! symlink (`..data`) beside those that it mounts. A notification is only a reason to compare the content; as
//! some file systems send none, the content is also polled.

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// The interval of polling without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// A change often causes several notifications: wait until they are over.
const DEBOUNCE: Duration = Duration::from_millis(50);

pub(super) struct ConfigFileWatch {
    /// None if the kernel provides no notifications.
    inner: Option<RecommendedWatcher>,
    told: Arc<Notify>,
    folders: Vec<PathBuf>,
    /// A hash of each file's content; none for one that cannot be read.
    seen: BTreeMap<PathBuf, Option<u64>>,
}

impl ConfigFileWatch {
    /// Watches for changes of the current content.
    pub(super) fn new(file: &Path) -> Self {
        let told = Arc::new(Notify::new());
        let tell = Arc::clone(&told);
        let inner = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                tell.notify_one();
            }
        });
        let inner =
            inner.inspect_err(|error| tracing::warn!(%error, "failed to watch files, polling them every few seconds"));
        let mut watch = Self {
            inner: inner.ok(),
            told,
            folders: Vec::new(),
            seen: BTreeMap::from([(file.to_owned(), file_fingerprint(file))]),
        };
        watch.watch_folder(file);
        watch
    }

    /// Returns when the content of one of these files differs from that at the last return. A file that is new
    /// in the list is no change: its caller has just read it. The future is cancel-safe.
    pub(super) async fn wait_for_change(&mut self, file: &Path, more: &[PathBuf]) {
        let files: Vec<&Path> = std::iter::once(file).chain(more.iter().map(PathBuf::as_path)).collect();
        files.iter().for_each(|file| self.watch_folder(file));
        loop {
            let mut changed = false;
            for file in &files {
                let now = file_fingerprint(file);
                let before = self.seen.insert((*file).to_owned(), now);
                changed |= before.is_some_and(|before| before != now);
            }
            if changed {
                return;
            }
            if timeout(POLL_INTERVAL, self.told.notified()).await.is_ok() {
                sleep(DEBOUNCE).await;
            }
        }
    }

    /// Watches the directory of a file, too.
    fn watch_folder(&mut self, file: &Path) {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Some(inner) = &mut self.inner else { return };
        if self.folders.iter().any(|known| known == folder) {
            return;
        }
        match inner.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => self.folders.push(folder.to_owned()),
            Err(error) => tracing::debug!(folder = %folder.display(), %error, "failed to watch a folder"),
        }
    }
}

fn file_fingerprint(file: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    fs::read(file).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}
