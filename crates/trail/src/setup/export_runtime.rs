//! A thread with a runtime for exporting.

use std::{io, thread::JoinHandle};

use tokio::{runtime::Handle, sync::oneshot};

/// A runtime on a thread of its own, which runs until this is dropped.
#[derive(Debug)]
pub(super) struct ExportRuntime {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ExportRuntime {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let run = move || {
            // An error means that the sender was dropped, which ends the runtime as well.
            let _ = runtime.block_on(ended);
        };
        let thread = std::thread::Builder::new().name("trail-export".to_owned()).spawn(run)?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for ExportRuntime {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}
