//! Notices that files changed.
//!
//! The folders of the files are watched, since that is where a rename shows: editors replace files, and Kubernetes
//! swaps a symbolic link (`..data`) beside those that it mounts. Whatever the kernel reports is only a reason to look:
//! a change is a change of what the files hold. As folders on some file systems report nothing, it also looks
//! every few seconds.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kubewake_config::mounted;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// How often to look without having been told.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A change is often several: wait until they are over.
const SETTLE: Duration = Duration::from_millis(100);

pub(super) struct Watcher {
    /// `None` where the kernel has no such service to give.
    inner: Option<RecommendedWatcher>,
    told: Arc<Notify>,
    /// The names of the files, shared with the one who tells.
    names: Arc<Mutex<BTreeSet<OsString>>>,
    folders: BTreeSet<PathBuf>,
    seen: Prints,
}

/// A print of each file's content; `None` for one that cannot be read.
pub(super) type Prints = BTreeMap<PathBuf, Option<u64>>;

impl Watcher {
    /// Watches from the state in which `document` is now: make it before you read the document.
    pub(super) fn new(document: &Path) -> Self {
        let told = Arc::new(Notify::new());
        let (tell, names) = (told.clone(), Arc::new(Mutex::new(BTreeSet::new())));
        let wanted = names.clone();
        let inner = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if concerns(&event, &wanted.lock().unwrap_or_else(PoisonError::into_inner)) {
                tell.notify_one();
            }
        });
        let inner = inner.inspect_err(|error| tracing::warn!(%error, "files are looked at only every few seconds"));
        let seen = prints(&BTreeSet::from([document.to_owned()]));
        Self { inner: inner.ok(), told, names, folders: BTreeSet::new(), seen }
    }

    /// Ends when the content of a file is another than it was when this last ended.
    pub(super) async fn changed(&mut self, document: &Path, more: impl Fn() -> BTreeSet<PathBuf>) {
        loop {
            let mut files = more();
            files.insert(document.to_owned());
            self.watch_folders(&files);
            let now = prints(&files);
            // Files that were not looked at before are no change: whoever named them has just read them.
            let before = std::mem::replace(&mut self.seen, now);
            if self.seen.iter().any(|(file, new)| before.get(file).is_some_and(|old| old != new)) {
                return;
            }
            if tokio::time::timeout(LOOK_EVERY, self.told.notified()).await.is_ok() {
                tokio::time::sleep(SETTLE).await;
            }
        }
    }

    fn watch_folders(&mut self, files: &BTreeSet<PathBuf>) {
        let folder = |file: &PathBuf| match mounted(file).parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let wanted: BTreeSet<PathBuf> = files.iter().map(folder).collect();
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) =
            files.iter().filter_map(|file| file.file_name().map(OsString::from)).collect();
        let Some(inner) = &mut self.inner else { return };
        for gone in self.folders.difference(&wanted) {
            // It may be gone from the disk too.
            let _ = inner.unwatch(gone);
        }
        for new in wanted.difference(&self.folders) {
            if let Err(error) = inner.watch(new, RecursiveMode::NonRecursive) {
                tracing::debug!(folder = %new.display(), %error, "this folder cannot be watched");
            }
        }
        self.folders = wanted;
    }
}

/// Whether an event is a reason to look: it is about a file of that name, or about a link such as Kubernetes' `..data`.
/// A folder may be a busy one, where other files change all the time.
fn concerns(event: &notify::Result<notify::Event>, names: &BTreeSet<OsString>) -> bool {
    let Ok(event) = event else { return true };
    let ours = |path: &PathBuf| {
        path.file_name().is_none_or(|name| names.contains(name) || name.as_encoded_bytes().starts_with(b".."))
    };
    !event.kind.is_access() && (event.paths.is_empty() || event.paths.iter().any(ours))
}

pub(super) fn prints(files: &BTreeSet<PathBuf>) -> Prints {
    files.iter().map(|file| (file.clone(), print(file))).collect()
}

fn print(file: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    std::fs::read(mounted(file)).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}
