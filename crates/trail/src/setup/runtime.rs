//! A thread on which exporters make their connections.
//!
//! It is theirs alone, so that a flush may block wherever it is called, also on the only thread of a program.

use std::{io, thread};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

/// The thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Runtime {
    handle: Handle,
    /// Dropped with it, which is what the thread waits for.
    _alive: oneshot::Sender<()>,
}

impl Runtime {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (alive, ended) = oneshot::channel();
        let handle = runtime.handle().clone();
        thread::Builder::new().name("trail-export".to_owned()).spawn(move || {
            // An error is the end that is awaited.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { handle, _alive: alive })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}
