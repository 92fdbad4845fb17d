//! A thread with a runtime for exporting.

use std::{io, thread::JoinHandle};

use tokio::{runtime::Handle, sync::oneshot};

/// Runs until it is dropped.
#[derive(Debug)]
pub(super) struct Background {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let run = move || {
            // Told, or its owner is gone.
            let _ = runtime.block_on(ended);
        };
        let thread = std::thread::Builder::new().name("trail-export".to_owned()).spawn(run)?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
