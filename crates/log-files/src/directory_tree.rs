//! The directories that the patterns lead to, and the files in them that match.
//!
//! *Guarantees*: a directory is watched before it is listed, so that no change falls between both. A directory that
//! cannot be watched is in `polled`. The numbers of directories and of entries in each are bounded; what is beyond
//! a bound is reported and not read.
//!
//! *Does not*: open files.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    ffi::{OsStr, OsString},
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    directory_watch::DirectoryWatcher,
    events::{FileProblem, ProblemKind},
    file_opener::{FileOpener, OpenFailure},
    glob::{Component, GlobPattern, PathPattern},
    kubelet_layout::{self, KubeletName},
    settings::{FileLimits, LogFilesSettings},
};

mod listing;

use listing::{DirectoryEntry, EntryKind};

/// A place in a pattern: its index, and the component that the next name has to match.
type PatternState = (usize, usize);

/// A directory in a directory: its name, its inode, and what patterns expect in it.
type FoundDirectory = (OsString, u64, Vec<PatternState>);

/// The directories, as they were when they were listed last.
pub(crate) struct DirectoryTree {
    opener: Arc<FileOpener>,
    include: Vec<PathPattern>,
    exclude: Vec<GlobPattern>,
    limits: FileLimits,
    nodes: HashMap<PathBuf, DirectoryNode>,
    /// Directories in which a base directory has to appear.
    awaited: HashSet<PathBuf>,
    /// Directories whose changes, or those of files that they link to, are not announced.
    polled: HashSet<PathBuf>,
}

struct DirectoryNode {
    base: Arc<Path>,
    states: Vec<PatternState>,
    /// Directories in it that were visited, with their inodes.
    subdirectories: HashMap<OsString, u64>,
}

/// A directory that has to be listed.
struct Visit {
    path: PathBuf,
    base: Arc<Path>,
    states: Vec<PatternState>,
}

/// What was found.
#[derive(Default)]
pub(crate) struct ScanResult {
    pub(crate) directories: Vec<ScannedDirectory>,
    /// Directories that are gone, with all that was in them.
    pub(crate) removed: Vec<PathBuf>,
    pub(crate) problems: Vec<FileProblem>,
}

/// The files of a directory that match. A file of it that is not listed is gone.
pub(crate) struct ScannedDirectory {
    pub(crate) path: PathBuf,
    pub(crate) base: Arc<Path>,
    pub(crate) files: BTreeMap<OsString, FoundFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFile {
    /// As the directory states it: on some file systems not the one of the file itself, but it changes with it.
    pub(crate) inode: u64,
    /// A link may lead to another file without a change in this directory.
    pub(crate) is_link: bool,
    /// Set if the file belongs to the log of a container.
    pub(crate) kubelet: Option<KubeletName>,
}

impl DirectoryTree {
    pub(crate) fn new(settings: &LogFilesSettings, opener: Arc<FileOpener>) -> Self {
        Self {
            opener,
            include: settings.include.iter().flat_map(|pattern| pattern.alternatives().to_vec()).collect(),
            exclude: settings.exclude.clone(),
            limits: settings.limits.clone(),
            nodes: HashMap::new(),
            awaited: HashSet::new(),
            polled: HashSet::new(),
        }
    }

    /// Directories that have to be polled.
    pub(crate) fn polled(&self) -> &HashSet<PathBuf> {
        &self.polled
    }

    /// Whether a change in this directory may mean that a base directory has appeared.
    pub(crate) fn is_awaited(&self, path: &Path) -> bool {
        self.awaited.contains(path)
    }

    /// Whether the directory is there; without it, nothing is known of the files below it.
    pub(crate) fn is_listed(&self, path: &Path) -> bool {
        self.nodes.contains_key(path)
    }

    /// Lists everything.
    pub(crate) fn scan_all(&mut self, watcher: &mut DirectoryWatcher) -> ScanResult {
        let before: HashSet<PathBuf> = std::mem::take(&mut self.nodes).into_keys().collect();
        self.awaited.clear();
        self.polled.clear();
        let mut visits = VecDeque::new();
        for (index, pattern) in self.include.iter().enumerate() {
            let base: Arc<Path> = pattern.base.as_path().into();
            visits.push_back(Visit { path: pattern.base.clone(), base, states: vec![(index, 0)] });
        }
        let mut result = self.visit(visits, watcher);
        for path in before {
            if !self.nodes.contains_key(&path) {
                watcher.unwatch(&path);
                result.removed.push(path);
            }
        }
        result
    }

    /// Lists these directories, and new ones below them.
    pub(crate) fn scan_changed(
        &mut self,
        changed: impl IntoIterator<Item = PathBuf>,
        watcher: &mut DirectoryWatcher,
    ) -> ScanResult {
        let visits = changed.into_iter().filter_map(|path| {
            let node = self.nodes.get(&path)?;
            Some(Visit { base: node.base.clone(), states: node.states.clone(), path })
        });
        let visits = visits.collect();
        self.visit(visits, watcher)
    }

    /// Whether the directory holds the same files under the same names as when it was listed.
    pub(crate) fn is_unchanged(&self, directory: &ScannedDirectory) -> bool {
        let Some(node) = self.nodes.get(&directory.path) else { return false };
        let relative = directory.path.strip_prefix(&directory.base).unwrap_or(Path::new(""));
        let listed = self
            .opener
            .open_directory(&directory.base, relative)
            .and_then(|opened| listing::list(opened, self.limits.directory_entries));
        let Ok((entries, _)) = listed else { return false };
        let visit = Visit { path: directory.path.clone(), base: node.base.clone(), states: node.states.clone() };
        self.match_entries(&visit, &entries).0 == directory.files
    }

    fn visit(&mut self, mut visits: VecDeque<Visit>, watcher: &mut DirectoryWatcher) -> ScanResult {
        let mut result = ScanResult::default();
        let mut scanned: BTreeMap<PathBuf, ScannedDirectory> = BTreeMap::new();
        while let Some(mut visit) = visits.pop_front() {
            if let Some(node) = self.nodes.get(&visit.path) {
                // Patterns that meet in a directory are matched together.
                let known = scanned.contains_key(&visit.path);
                if known && visit.states.iter().all(|state| node.states.contains(state)) {
                    continue;
                }
                visit.states.extend(node.states.iter());
                visit.states.sort_unstable();
                visit.states.dedup();
            } else if self.nodes.len() >= self.limits.directories {
                let message = format!("more than {} directories match the patterns", self.limits.directories);
                result.problems.push(FileProblem::new(ProblemKind::Limit, &visit.path, message));
                continue;
            }
            match self.list(&visit, watcher, &mut result) {
                Ok(entries) => {
                    let (files, subdirectories) = self.match_entries(&visit, &entries);
                    if files.values().any(|file| file.is_link) {
                        self.polled.insert(visit.path.clone());
                    }
                    self.keep_subdirectories(&visit, subdirectories, &mut visits, watcher, &mut result);
                    let directory = ScannedDirectory { path: visit.path.clone(), base: visit.base.clone(), files };
                    scanned.insert(visit.path, directory);
                }
                Err(OpenFailure::Absent) => {
                    if visit.path == *visit.base {
                        self.await_base(&visit.path, watcher);
                    }
                    self.remove_node(&visit.path, watcher, &mut result);
                }
                Err(OpenFailure::RefusedLink) => {
                    let message = "refused to follow a symbolic link: it leads out of the configured directories";
                    result.problems.push(FileProblem::new(ProblemKind::RefusedLink, &visit.path, message));
                    self.remove_node(&visit.path, watcher, &mut result);
                }
                Err(OpenFailure::Io(error)) => {
                    let message = format!("failed to list directory: {error}");
                    result.problems.push(FileProblem::new(ProblemKind::Unreadable, &visit.path, message));
                }
            }
        }
        result.directories = scanned.into_values().collect();
        result
    }

    fn list(
        &mut self,
        visit: &Visit,
        watcher: &mut DirectoryWatcher,
        result: &mut ScanResult,
    ) -> Result<Vec<DirectoryEntry>, OpenFailure> {
        let relative = visit.path.strip_prefix(&visit.base).unwrap_or(Path::new(""));
        let directory = self.opener.open_directory(&visit.base, relative)?;
        if !watcher.is_watched(&visit.path) {
            match watcher.watch(&visit.path, directory.as_fd()) {
                Ok(()) => {
                    self.polled.remove(&visit.path);
                }
                Err(error) => {
                    if self.polled.insert(visit.path.clone()) {
                        let message = format!(
                            "failed to watch directory, it is polled: {error}; fs.inotify.max_user_watches may be too low"
                        );
                        result.problems.push(FileProblem::new(ProblemKind::NotWatched, &visit.path, message));
                    }
                }
            }
        }
        let (entries, is_complete) = listing::list(directory, self.limits.directory_entries)?;
        if !is_complete {
            let message = format!("more than {} entries, the rest is not read", self.limits.directory_entries);
            result.problems.push(FileProblem::new(ProblemKind::Limit, &visit.path, message));
        }
        Ok(entries)
    }

    /// The files that match, and the directories to visit with the states of patterns in them.
    fn match_entries(
        &self,
        visit: &Visit,
        entries: &[DirectoryEntry],
    ) -> (BTreeMap<OsString, FoundFile>, Vec<FoundDirectory>) {
        let states = self.close_states(&visit.states);
        let is_container = kubelet_layout::is_container_directory(&visit.path);
        let mut files = BTreeMap::new();
        let mut subdirectories = Vec::new();
        for entry in entries {
            if visit.path.as_os_str().len() + entry.name.len() >= self.limits.path_bytes {
                continue;
            }
            if entry.kind.may_be_directory() {
                let below = self.states_below(&states, &entry.name, entry.kind);
                if !below.is_empty() {
                    subdirectories.push((entry.name.clone(), entry.inode, below));
                }
            }
            if !entry.kind.may_be_file() {
                continue;
            }
            let is_link = entry.kind == EntryKind::Link;
            let kubelet = is_container.then(|| KubeletName::parse(entry.name.as_bytes())).flatten();
            // Rotated files belong to their log, whether or not they match themselves.
            let kubelet = kubelet.filter(|name| self.is_match(&visit.path, &states, OsStr::new(&name.live_name())));
            if kubelet.is_some() || self.is_match(&visit.path, &states, &entry.name) {
                files.insert(entry.name.clone(), FoundFile { inode: entry.inode, is_link, kubelet });
            }
        }
        (files, subdirectories)
    }

    /// Adds the states that are reached without another name, as `**` matches no directory, too.
    fn close_states(&self, states: &[PatternState]) -> Vec<PatternState> {
        let mut closed = states.to_vec();
        for (pattern, component) in states {
            if matches!(self.component(*pattern, *component), Some(Component::AnyDepth)) {
                closed.push((*pattern, component + 1));
            }
        }
        closed.sort_unstable();
        closed.dedup();
        closed
    }

    fn component(&self, pattern: usize, component: usize) -> Option<&Component> {
        self.include.get(pattern)?.components.get(component)
    }

    fn states_below(&self, states: &[PatternState], name: &OsStr, kind: EntryKind) -> Vec<PatternState> {
        let mut below = Vec::new();
        for (pattern, component) in states {
            match self.component(*pattern, *component) {
                // As in the Collector, `**` enters no links, so that it ends.
                Some(Component::AnyDepth) if kind != EntryKind::Link => below.push((*pattern, *component)),
                Some(Component::Name(names))
                    if self.component(*pattern, component + 1).is_some() && names.matches(name.as_bytes()) =>
                {
                    below.push((*pattern, component + 1));
                }
                _ => {}
            }
        }
        below
    }

    fn is_match(&self, directory: &Path, states: &[PatternState], name: &OsStr) -> bool {
        let is_included = states.iter().any(|(pattern, component)| match self.component(*pattern, *component) {
            Some(Component::Name(names)) => {
                self.component(*pattern, component + 1).is_none() && names.matches(name.as_bytes())
            }
            Some(Component::AnyDepth) => self.component(*pattern, component + 1).is_none(),
            None => false,
        });
        is_included && {
            let path = directory.join(name);
            !self.exclude.iter().any(|pattern| pattern.matches(&path))
        }
    }

    /// Remembers the directories below, visits new ones, and forgets those that are gone.
    fn keep_subdirectories(
        &mut self,
        visit: &Visit,
        found: Vec<FoundDirectory>,
        visits: &mut VecDeque<Visit>,
        watcher: &mut DirectoryWatcher,
        result: &mut ScanResult,
    ) {
        let before = self.nodes.remove(&visit.path).map(|node| node.subdirectories).unwrap_or_default();
        let mut after = HashMap::new();
        for (name, inode, states) in found {
            let path = visit.path.join(&name);
            let is_same = before.get(&name) == Some(&inode);
            if !is_same && before.contains_key(&name) {
                self.remove_node(&path, watcher, result);
            }
            let known = self.nodes.get(&path);
            if known.is_none_or(|node| !states.iter().all(|state| node.states.contains(state))) {
                visits.push_back(Visit { path, base: visit.base.clone(), states });
            }
            after.insert(name, inode);
        }
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            self.remove_node(&visit.path.join(name), watcher, result);
        }
        let node = DirectoryNode { base: visit.base.clone(), states: visit.states.clone(), subdirectories: after };
        self.nodes.insert(visit.path.clone(), node);
    }

    fn remove_node(&mut self, path: &Path, watcher: &mut DirectoryWatcher, result: &mut ScanResult) {
        let mut paths = vec![path.to_path_buf()];
        while let Some(path) = paths.pop() {
            watcher.unwatch(&path);
            self.polled.remove(&path);
            if let Some(node) = self.nodes.remove(&path) {
                paths.extend(node.subdirectories.keys().map(|name| path.join(name)));
                result.removed.push(path);
            }
        }
    }

    /// Watches the nearest directory that exists above a base directory that does not.
    fn await_base(&mut self, base: &Path, watcher: &mut DirectoryWatcher) {
        for ancestor in base.ancestors().skip(1) {
            let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
            if let Ok(directory) = self.opener.open_directory(ancestor, Path::new("")) {
                if watcher.is_watched(ancestor) || watcher.watch(ancestor, directory.as_fd()).is_ok() {
                    self.awaited.insert(ancestor.to_path_buf());
                }
                return;
            }
        }
    }
}
