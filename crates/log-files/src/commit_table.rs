//! Positions that other threads commit, until the owner of the log files takes them.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::event::EventfdFlags;

use crate::position::{LogPosition, OutputId, StreamId};

/// Commits positions and wakes the owner, from any thread. It does not keep anything open.
#[derive(Debug, Clone)]
pub struct LogFilesHandle {
    commits: Arc<CommitTable>,
}

impl LogFilesHandle {
    pub(crate) fn new(commits: Arc<CommitTable>) -> Self {
        Self { commits }
    }

    /// The output has dealt with everything before the position. It counts for the memory at once, and for a restart
    /// when positions are stored next. A position before the committed one is ignored.
    pub fn commit(&self, output: OutputId, stream: StreamId, position: LogPosition) {
        let mut commits = self.commits.lock();
        let committed = commits.entry((stream, output)).or_insert(position);
        *committed = (*committed).max(position);
    }

    /// Ends the wait of `LogFiles::poll`.
    pub fn wake(&self) {
        // It fails only when the counter is full, and then a wake is pending.
        let _ = rustix::io::write(&self.commits.event, &1_u64.to_ne_bytes());
    }
}

#[derive(Debug)]
pub(crate) struct CommitTable {
    commits: Mutex<HashMap<(StreamId, OutputId), LogPosition>>,
    event: OwnedFd,
}

impl CommitTable {
    pub(crate) fn new() -> io::Result<Self> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { commits: Mutex::default(), event })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    pub(crate) fn clear_wake(&self) {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.event, &mut counter);
    }

    pub(crate) fn has_any(&self) -> bool {
        !self.lock().is_empty()
    }

    pub(crate) fn take(&self) -> HashMap<(StreamId, OutputId), LogPosition> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(StreamId, OutputId), LogPosition>> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
