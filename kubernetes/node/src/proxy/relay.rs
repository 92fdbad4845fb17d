//! Relays bytes between two connections.
//!
//! Small amounts are copied through one buffer per thread; large amounts are spliced through a pipe, so that
//! the kernel moves pages without a copy. A direction that has just moved a large amount uses a pipe next. A
//! pipe is borrowed only while it holds data, so that an idle connection holds neither a buffer nor a pipe.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    os::fd::OwnedFd,
    pin::Pin,
    task::{Poll, ready},
};

use kubewake_runtime::lock::Mutex;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::{
    io::{AsyncRead, AsyncWriteExt, Interest, ReadBuf},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

/// The size of the copy buffer: it fits into the L1 cache.
const COPY_BUFFER_BYTES: usize = 16 << 10;

/// The most bytes per splice. A pipe has 16 slots; each takes a segment of up to 32 KiB, as TCP delivers them.
const MAX_SPLICE_BYTES: usize = 512 << 10;

/// The number of unused pipes that are kept.
const MAX_IDLE_PIPES: usize = 32;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; COPY_BUFFER_BYTES].into());
}

/// A pool of empty pipes.
#[derive(Debug, Default)]
pub(super) struct PipePool(Mutex<Vec<SplicePipe>>);

#[derive(Debug)]
struct SplicePipe {
    from: OwnedFd,
    to: OwnedFd,
}

impl PipePool {
    fn take(&self) -> io::Result<SplicePipe> {
        if let Some(pipe) = self.0.lock().pop() {
            return Ok(pipe);
        }
        let (from, to) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        Ok(SplicePipe { from, to })
    }

    fn put_back(&self, empty: SplicePipe) {
        let mut pipes = self.0.lock();
        if pipes.len() < MAX_IDLE_PIPES {
            pipes.push(empty);
        }
    }
}

/// Relays both directions until both have ended. If one side resets its connection, the other one is reset,
/// too.
pub(super) async fn relay(mut one: TcpStream, mut other: TcpStream, pipes: &PipePool) {
    // The data has been buffered once already, so Nagle's algorithm would only add delay.
    let _ = (one.set_nodelay(true), other.set_nodelay(true));
    let (from_one, to_one) = one.split();
    let (from_other, to_other) = other.split();
    let there = RelayDirection { from: from_one, to: to_other, pipes };
    let back = RelayDirection { from: from_other, to: to_one, pipes };
    if tokio::try_join!(there.run(), back.run()).is_err() {
        let _ = (one.set_zero_linger(), other.set_zero_linger());
    }
}

struct RelayDirection<'a> {
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    pipes: &'a PipePool,
}

/// The reason why a direction ends.
enum DirectionEnd {
    Finished,
    SenderBroken,
    /// The receiver takes no more data. Its own data is still relayed; the other direction sees its end.
    ReceiverClosed,
}

impl RelayDirection<'_> {
    /// Returns an error if the sender reset the connection.
    async fn run(mut self) -> Result<(), ()> {
        let mut much = false;
        let end = loop {
            let moved = if much { self.splice().await } else { self.copy().await };
            match moved {
                Ok(count) => much = count >= COPY_BUFFER_BYTES,
                Err(end) => break end,
            }
        };
        match end {
            DirectionEnd::Finished => {
                let _ = self.to.shutdown().await;
                Ok(())
            }
            DirectionEnd::ReceiverClosed => Ok(()),
            DirectionEnd::SenderBroken => Err(()),
        }
    }

    /// Reads once and writes all of it. Data that the receiver takes at once is never anywhere but in the
    /// thread's buffer.
    async fn copy(&mut self) -> Result<usize, DirectionEnd> {
        let from = &mut self.from;
        let to = &self.to;
        let (count, rest) = poll_fn(|context| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                if ready!(Pin::new(&mut *from).poll_read(context, &mut buffer)).is_err() {
                    return Poll::Ready(Err(DirectionEnd::SenderBroken));
                }
                Poll::Ready(try_write(to, buffer.filled()))
            })
        })
        .await?;
        if !rest.is_empty() {
            self.to.write_all(&rest).await.map_err(|_| DirectionEnd::ReceiverClosed)?;
        }
        Ok(count)
    }

    /// Splices the available data through a pipe.
    async fn splice(&mut self) -> Result<usize, DirectionEnd> {
        self.from.readable().await.map_err(|_| DirectionEnd::SenderBroken)?;
        // Without a pipe, the data is copied.
        let Ok(pipe) = self.pipes.take() else { return Ok(0) };
        let from = self.from.as_ref();
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let moved =
            from.try_io(Interest::READABLE, || Ok(splice(from, None, &pipe.to, None, MAX_SPLICE_BYTES, flags)?));
        let count = match moved {
            Ok(0) => {
                self.pipes.put_back(pipe);
                return Err(DirectionEnd::Finished);
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.pipes.put_back(pipe);
                // A sender of a large amount is likely to continue.
                return Ok(COPY_BUFFER_BYTES);
            }
            Err(_) => return Err(DirectionEnd::SenderBroken),
        };
        let to = self.to.as_ref();
        let mut left = count;
        while left > 0 {
            match to.try_io(Interest::WRITABLE, || Ok(splice(&pipe.from, None, to, None, left, flags)?)) {
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    to.writable().await.map_err(|_| DirectionEnd::ReceiverClosed)?;
                }
                Err(_) => return Err(DirectionEnd::ReceiverClosed),
            }
        }
        self.pipes.put_back(pipe);
        Ok(count)
    }
}

/// Writes as much as possible without blocking: returns the written length and the rest.
fn try_write(to: &WriteHalf<'_>, bytes: &[u8]) -> Result<(usize, Vec<u8>), DirectionEnd> {
    if bytes.is_empty() {
        return Err(DirectionEnd::Finished);
    }
    let written = match to.try_write(bytes) {
        Ok(written) => written,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(_) => return Err(DirectionEnd::ReceiverClosed),
    };
    Ok((bytes.len(), bytes.get(written..).unwrap_or_default().to_vec()))
}

#[cfg(test)]
mod tests;
