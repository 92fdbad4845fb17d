//! Changes in directories, by inotify.
//!
//! *Guarantees*: a change in a watched directory is reported, or `ChangeSet::overflowed` is set, after which everything
//! has to be listed again. Only directories are watched, so that the number of watches does not grow with files.
//!
//! *Assumes*: the kernel announces changes. It does not for file systems that other machines write to; these are found
//! when everything is listed again.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

/// Room for some 2 000 events of one system call.
const EVENT_BUFFER_BYTES: usize = 64 * 1024;

/// Events that are read before the owner gets its turn; more are read in its next one.
const MAX_EVENTS_AT_ONCE: usize = 16_384;

/// What has changed since the last time.
#[derive(Debug, Default)]
pub(crate) struct ChangeSet {
    /// Directories whose names have changed.
    pub(crate) directories: HashSet<PathBuf>,
    /// Files that were written.
    pub(crate) files: HashSet<PathBuf>,
    /// Events were lost: anything may have changed.
    pub(crate) overflowed: bool,
}

/// Watches directories.
#[derive(Debug)]
pub(crate) struct DirectoryWatcher {
    inotify: OwnedFd,
    /// One directory can be reached by several paths, which then share a watch.
    paths: HashMap<i32, Vec<PathBuf>>,
    watches: HashMap<PathBuf, i32>,
    buffer: Vec<MaybeUninit<u8>>,
    /// As if the kernel had no room for another watch.
    #[cfg(test)]
    pub(crate) is_full: bool,
}

impl DirectoryWatcher {
    pub(crate) fn new() -> Result<Self, Errno> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let buffer = vec![MaybeUninit::uninit(); EVENT_BUFFER_BYTES];
        Ok(Self {
            inotify,
            paths: HashMap::new(),
            watches: HashMap::new(),
            buffer,
            #[cfg(test)]
            is_full: false,
        })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Watches the open directory, whatever its path leads to by now.
    pub(crate) fn watch(&mut self, path: &Path, directory: BorrowedFd<'_>) -> Result<(), Errno> {
        #[cfg(test)]
        if self.is_full {
            return Err(Errno::NOSPC);
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let open_path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let watch = match inotify::add_watch(&self.inotify, open_path, flags) {
            // Without /proc, the path has to do.
            Err(Errno::NOENT) => inotify::add_watch(&self.inotify, path, flags | WatchFlags::DONT_FOLLOW)?,
            result => result?,
        };
        match self.watches.insert(path.to_path_buf(), watch) {
            Some(previous) if previous == watch => return Ok(()),
            Some(previous) => self.forget(previous, path),
            None => {}
        }
        self.paths.entry(watch).or_default().push(path.to_path_buf());
        Ok(())
    }

    pub(crate) fn is_watched(&self, path: &Path) -> bool {
        self.watches.contains_key(path)
    }

    pub(crate) fn unwatch(&mut self, path: &Path) {
        if let Some(watch) = self.watches.remove(path) {
            self.forget(watch, path);
        }
    }

    fn forget(&mut self, watch: i32, path: &Path) {
        let Some(paths) = self.paths.get_mut(&watch) else { return };
        paths.retain(|other| other != path);
        if paths.is_empty() {
            self.paths.remove(&watch);
            // A watch of a removed directory is gone already.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    /// Reads what has happened.
    pub(crate) fn read_changes(&mut self, changes: &mut ChangeSet) {
        let mut ended = Vec::new();
        let mut last_written: Option<(i32, Vec<u8>)> = None;
        let mut events = Reader::new(self.inotify.as_fd(), &mut self.buffer);
        for _ in 0..MAX_EVENTS_AT_ONCE {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    changes.overflowed = true;
                    break;
                }
            };
            let kind = event.events();
            if kind.contains(ReadFlags::QUEUE_OVERFLOW) {
                changes.overflowed = true;
                continue;
            }
            let Some(paths) = self.paths.get(&event.wd()) else { continue };
            if kind.contains(ReadFlags::IGNORED) {
                ended.push(event.wd());
            }
            let name = event.file_name().map(|name| name.to_bytes()).unwrap_or_default();
            if kind.contains(ReadFlags::MODIFY) {
                // Many writes to one file come in a row.
                if last_written.as_ref().is_some_and(|(watch, last)| *watch == event.wd() && last == name) {
                    continue;
                }
                changes.files.extend(paths.iter().map(|path| path.join(OsStr::from_bytes(name))));
                last_written = Some((event.wd(), name.to_vec()));
            } else {
                for path in paths {
                    if !changes.directories.contains(path) {
                        changes.directories.insert(path.clone());
                    }
                }
            }
        }
        for watch in ended {
            for path in self.paths.remove(&watch).unwrap_or_default() {
                self.watches.remove(&path);
            }
        }
    }
}
