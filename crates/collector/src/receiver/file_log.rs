//! `file_log`: the lines of log files.
//!
//! The files are the buffer: each output of each pipeline has a position in each log, which moves when the output has
//! dealt with the lines before it ([decision 21](../../../../docs/decisions/0021-log-files-are-the-buffer.md)).
//!
//! *Guarantees*: a line that can still be read is delivered to each output at least once, or dropped by a
//! processor, or refused for good by the backend, which is counted. Twice only if the process was killed, a
//! backend's answer was lost, or a request was delivered in part. An output that hangs holds no more memory than
//! its window, and delays no other output. A thread of its own reads, so that slow disks delay no connection.
//! Nothing runs while nothing is written.
//!
//! *Assumes* that what stands behind a connector settles together: outputs behind one share a position.
//!
//! *Does not* charge the buffers that are shared by all logs of the receiver to a pipeline: one chunk of a file and one
//! request, some megabytes if lines are long.

mod delivery_ledger;
mod file_header;
mod file_names;
mod line_decoder;
mod log_reader;
mod output_table;
mod pod_path;
mod position_stores;
mod read_settings;
mod receipt_inbox;
mod record_builder;
mod request_submission;
mod worker;
mod worker_control;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use futures_util::future::BoxFuture;
use kubewake_config::{ComponentId, model::FileLogReceiver as Settings};

use self::{
    position_stores::PositionPlace,
    read_settings::ReadSettings,
    worker::FileLogWorker,
    worker_control::{WorkerControl, WorkerPhase, WorkerTask},
};
use crate::components::{BuildError, PrepareReceiver, PreparedReceiver, Receiver, ReceiverContext, ReceiverSite};

pub(crate) fn prepare(settings: &Settings, context: &ReceiverContext<'_>) -> Result<PreparedReceiver, BuildError> {
    let read = Arc::new(ReadSettings::new(settings)?);
    let place = position_place(settings, context)?;
    // A thread that waits for its work: starting cannot fail.
    let worker = match context.previous::<FileLogReceiver>() {
        Some(_) => None,
        None => Some(spawn_worker(context.id)?),
    };
    Ok(PreparedReceiver::new(PreparedFileLog { read, place, worker }))
}

/// Where positions are kept. Without a directory they last as long as the process.
fn position_place(settings: &Settings, context: &ReceiverContext<'_>) -> Result<PositionPlace, BuildError> {
    if context.state_root.is_some() || settings.storage.is_some() {
        return Ok(PositionPlace::Directory(context.state_directory()?));
    }
    tracing::warn!(receiver = %context.id,
        "positions in log files are not stored, because neither the receiver nor the process has a directory for state; \
         each start begins as `start_at` says");
    Ok(PositionPlace::Memory)
}

fn spawn_worker(id: &ComponentId) -> Result<Arc<WorkerControl>, BuildError> {
    let control = Arc::<WorkerControl>::default();
    let own = control.clone();
    let name = id.clone();
    let run = move || {
        // Also if the thread panics: nobody waits for it in vain.
        let _ends = EndedOnDrop(own.clone());
        if let Some(task) = own.wait_for_task() {
            FileLogWorker::new(name, own.clone(), task).run();
        }
    };
    thread::Builder::new()
        .name("file_log".to_owned())
        .spawn(run)
        .map_err(|error| BuildError(format!("failed to start the thread that reads log files: {error}")))?;
    Ok(control)
}

struct EndedOnDrop(Arc<WorkerControl>);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        self.0.set_phase(WorkerPhase::Ended);
    }
}

struct PreparedFileLog {
    read: Arc<ReadSettings>,
    place: PositionPlace,
    /// `None` if the previous receiver has one.
    worker: Option<Arc<WorkerControl>>,
}

impl PrepareReceiver for PreparedFileLog {
    type Running = FileLogReceiver;

    fn start(self, previous: Option<&FileLogReceiver>, site: &ReceiverSite<'_>) -> FileLogReceiver {
        let control = match (previous, &self.worker) {
            (Some(previous), _) => previous.hand_over(),
            (None, Some(worker)) => worker.clone(),
            // A previous receiver that was prepared for is there when its successor starts.
            (None, None) => Arc::default(),
        };
        let task = WorkerTask {
            read: self.read.clone(),
            place: self.place.clone(),
            pipelines: site.pipelines.clone(),
            runtime: tokio::runtime::Handle::current(),
            stats: site.registry.log_file(site.id),
        };
        control.set_task(task);
        FileLogReceiver { control, is_replaced: AtomicBool::new(false) }
    }
}

impl Drop for PreparedFileLog {
    fn drop(&mut self) {
        // A document that was refused: its thread ends.
        if let Some(worker) = &self.worker {
            worker.stop_unless_started();
        }
    }
}

/// A running receiver. Its successor takes over the thread, with what is in flight.
pub struct FileLogReceiver {
    control: Arc<WorkerControl>,
    is_replaced: AtomicBool,
}

impl FileLogReceiver {
    fn hand_over(&self) -> Arc<WorkerControl> {
        self.is_replaced.store(true, Ordering::Release);
        self.control.clone()
    }

    fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Acquire)
    }
}

impl Receiver for FileLogReceiver {
    fn shutdown(&self) {
        if !self.is_replaced() {
            self.control.stop_reading();
        }
    }

    fn abort(&self) {}

    fn wait_closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !self.is_replaced() {
                self.control.wait_for_phase(WorkerPhase::Quiet).await;
            }
        })
    }

    fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !self.is_replaced() {
                self.control.end();
                self.control.wait_for_phase(WorkerPhase::Ended).await;
            }
        })
    }
}

impl Drop for FileLogReceiver {
    fn drop(&mut self) {
        if !self.is_replaced() {
            self.control.end();
        }
    }
}
