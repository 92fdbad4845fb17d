//! What the engine tells the thread that reads, and how it waits for the thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::{runtime::Handle, sync::watch};

use super::{position_stores::PositionPlace, read_settings::ReadSettings, receipt_inbox::ReceiptInbox};
use crate::core::{LogFileStats, PipelineSet};

/// What the thread does.
pub(super) struct WorkerTask {
    pub(super) read: Arc<ReadSettings>,
    pub(super) place: PositionPlace,
    pub(super) pipelines: Arc<PipelineSet>,
    /// Where the components of the pipelines run.
    pub(super) runtime: Handle,
    pub(super) stats: Arc<LogFileStats>,
}

/// How far the thread has come. The order matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkerPhase {
    #[default]
    Reading,
    /// It submits nothing more and holds no pipeline. It still awaits receipts.
    Quiet,
    /// Positions are stored, and the thread has ended.
    Ended,
}

/// What the thread is asked for. The order matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkerRequest {
    #[default]
    Read,
    StopReading,
    End,
}

#[derive(Default)]
struct ControlState {
    task: Option<WorkerTask>,
    has_started: bool,
    request: WorkerRequest,
}

#[derive(Default)]
pub(super) struct WorkerControl {
    state: Mutex<ControlState>,
    changed: Condvar,
    phase: watch::Sender<WorkerPhase>,
    pub(super) inbox: Arc<ReceiptInbox>,
}

impl WorkerControl {
    fn state(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut ControlState)) {
        change(&mut self.state());
        self.changed.notify_all();
        self.inbox.wake();
    }

    /// Gives the thread its work, or new work.
    pub(super) fn set_task(&self, task: WorkerTask) {
        self.change(|state| {
            state.task = Some(task);
            state.has_started = true;
        });
    }

    pub(super) fn stop_unless_started(&self) {
        self.change(|state| {
            if !state.has_started {
                state.request = WorkerRequest::End;
            }
        });
    }

    pub(super) fn stop_reading(&self) {
        self.change(|state| {
            state.task = None;
            state.request = state.request.max(WorkerRequest::StopReading);
        });
    }

    pub(super) fn end(&self) {
        self.change(|state| {
            state.task = None;
            state.request = WorkerRequest::End;
        });
    }

    /// Waits for the first work; `None` if there will be none.
    pub(super) fn wait_for_task(&self) -> Option<WorkerTask> {
        let mut state = self.state();
        loop {
            if let Some(task) = state.task.take() {
                return Some(task);
            }
            if state.request != WorkerRequest::Read {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes new work, and what is asked for.
    pub(super) fn take(&self) -> (Option<WorkerTask>, WorkerRequest) {
        let mut state = self.state();
        (state.task.take(), state.request)
    }

    /// Pauses the calling thread, at most until something else is asked for than what it has seen.
    pub(super) fn pause(&self, limit: std::time::Duration, seen: WorkerRequest) {
        let state = self.state();
        if state.task.is_none() && state.request == seen {
            drop(self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(super) fn set_phase(&self, phase: WorkerPhase) {
        self.phase.send_if_modified(|current| {
            let is_later = phase > *current;
            *current = phase.max(*current);
            is_later
        });
    }

    pub(super) async fn wait_for_phase(&self, phase: WorkerPhase) {
        // The sender is part of this value.
        let _ = self.phase.subscribe().wait_for(|current| *current >= phase).await;
    }
}
