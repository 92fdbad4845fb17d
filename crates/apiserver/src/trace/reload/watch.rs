//! Notices that a file holds something else.
//!
//! Folders are watched, since that is where a rename shows: editors replace files, and Kubernetes swaps a link (`..data`) beside those
//! that it mounts. What the kernel reports is only a reason to look; as some file systems report nothing, it also looks now and then.

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

/// How often to look without having been told.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A change is often several: wait until they are over.
const SETTLE: Duration = Duration::from_millis(50);

pub(super) struct Watch {
    /// None where the kernel has no such service to give.
    inner: Option<RecommendedWatcher>,
    told: Arc<Notify>,
    folders: Vec<PathBuf>,
    /// A print of each file's content; none of one that cannot be read.
    seen: BTreeMap<PathBuf, Option<u64>>,
}

impl Watch {
    /// Watches from the state in which a file is now.
    pub(super) fn new(file: &Path) -> Self {
        let told = Arc::new(Notify::new());
        let tell = Arc::clone(&told);
        let inner = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                tell.notify_one();
            }
        });
        let inner = inner.inspect_err(|error| tracing::warn!(%error, "files are looked at only every few seconds"));
        let mut watch = Self {
            inner: inner.ok(),
            told,
            folders: Vec::new(),
            seen: BTreeMap::from([(file.to_owned(), print(file))]),
        };
        watch.folder_of(file);
        watch
    }

    /// Ends when one of these files holds something else than when this last ended. A file that was not among them before is no
    /// change: whoever names it has just read it. May be dropped at any time.
    pub(super) async fn changed(&mut self, file: &Path, more: &[PathBuf]) {
        let files: Vec<&Path> = std::iter::once(file).chain(more.iter().map(PathBuf::as_path)).collect();
        files.iter().for_each(|file| self.folder_of(file));
        loop {
            let mut changed = false;
            for file in &files {
                let now = print(file);
                let before = self.seen.insert((*file).to_owned(), now);
                changed |= before.is_some_and(|before| before != now);
            }
            if changed {
                return;
            }
            if timeout(LOOK_EVERY, self.told.notified()).await.is_ok() {
                sleep(SETTLE).await;
            }
        }
    }

    /// Watches the folder of a file too.
    fn folder_of(&mut self, file: &Path) {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Some(inner) = &mut self.inner else { return };
        if self.folders.iter().any(|known| known == folder) {
            return;
        }
        match inner.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => self.folders.push(folder.to_owned()),
            Err(error) => tracing::debug!(folder = %folder.display(), %error, "this folder cannot be watched"),
        }
    }
}

fn print(file: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    fs::read(file).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}
