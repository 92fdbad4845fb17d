//! Bytes from one connection to another, and back.
//!
//! Little is copied, through one buffer for each thread; much goes through a pipe, so that the kernel hands over pages and nobody
//! copies. A direction that last moved much uses a pipe next. Pipes are borrowed for as long as something is in them, so that a
//! connection that is idle holds neither a buffer nor a pipe.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Poll, ready},
};

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::{
    io::{AsyncRead, AsyncWriteExt, Interest, ReadBuf},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

/// What is copied at once: as much as stays in the processor's nearest cache.
const LITTLE: usize = 16 << 10;

/// The most that goes through a pipe at once. A pipe has 16 places; each takes a piece of up to 32 KiB, as TCP makes them.
const MUCH: usize = 512 << 10;

/// Pipes that are kept when nobody uses them.
const PIPES: usize = 32;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; LITTLE].into());
}

/// Pipes that are empty.
#[derive(Debug, Default)]
pub(super) struct Pipes(Mutex<Vec<Pipe>>);

#[derive(Debug)]
struct Pipe {
    from: OwnedFd,
    to: OwnedFd,
}

impl Pipes {
    fn take(&self) -> io::Result<Pipe> {
        if let Some(pipe) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(pipe);
        }
        let (from, to) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        Ok(Pipe { from, to })
    }

    fn give_back(&self, empty: Pipe) {
        let mut pipes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pipes.len() < PIPES {
            pipes.push(empty);
        }
    }
}

/// Carries what each side sends to the other, until both have ended. If one breaks off, so does the other.
pub(super) async fn relay(mut one: TcpStream, mut other: TcpStream, pipes: &Pipes) {
    // What is here has waited long enough.
    let _ = (one.set_nodelay(true), other.set_nodelay(true));
    let (from_one, to_one) = one.split();
    let (from_other, to_other) = other.split();
    let there = Direction { from: from_one, to: to_other, pipes };
    let back = Direction { from: from_other, to: to_one, pipes };
    if tokio::try_join!(there.carry(), back.carry()).is_err() {
        let _ = (one.set_zero_linger(), other.set_zero_linger());
    }
}

struct Direction<'a> {
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    pipes: &'a Pipes,
}

/// Why a direction does not go on.
enum End {
    /// The sender has ended.
    Finished,
    /// The sender broke off.
    Broken,
    /// The receiver takes nothing more. What it still sends is carried; that it ends is for the other direction to see.
    Deaf,
}

impl Direction<'_> {
    /// The error is that the sender broke off.
    async fn carry(mut self) -> Result<(), ()> {
        let mut much = false;
        let end = loop {
            let moved = if much { self.splice().await } else { self.copy().await };
            match moved {
                Ok(count) => much = count >= LITTLE,
                Err(end) => break end,
            }
        };
        match end {
            End::Finished => {
                let _ = self.to.shutdown().await;
                Ok(())
            }
            End::Deaf => Ok(()),
            End::Broken => Err(()),
        }
    }

    /// Reads once and writes all of it. What the receiver takes at once is never anywhere but in the thread's buffer.
    async fn copy(&mut self) -> Result<usize, End> {
        let (from, to) = (&mut self.from, &self.to);
        let (count, rest) = poll_fn(|context| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                if ready!(Pin::new(&mut *from).poll_read(context, &mut buffer)).is_err() {
                    return Poll::Ready(Err(End::Broken));
                }
                Poll::Ready(hand_on(to, buffer.filled()))
            })
        })
        .await?;
        if !rest.is_empty() {
            self.to.write_all(&rest).await.map_err(|_| End::Deaf)?;
        }
        Ok(count)
    }

    /// Moves what is there through a pipe.
    async fn splice(&mut self) -> Result<usize, End> {
        self.from.readable().await.map_err(|_| End::Broken)?;
        // Without another pipe, it is copied.
        let Ok(pipe) = self.pipes.take() else { return Ok(0) };
        let from = self.from.as_ref();
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let moved = from.try_io(Interest::READABLE, || Ok(splice(from, None, &pipe.to, None, MUCH, flags)?));
        let count = match moved {
            Ok(0) => {
                self.pipes.give_back(pipe);
                return Err(End::Finished);
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.pipes.give_back(pipe);
                // Whoever sends much at once is likely to go on.
                return Ok(LITTLE);
            }
            Err(_) => return Err(End::Broken),
        };
        let to = self.to.as_ref();
        let mut left = count;
        while left > 0 {
            match to.try_io(Interest::WRITABLE, || Ok(splice(&pipe.from, None, to, None, left, flags)?)) {
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    to.writable().await.map_err(|_| End::Deaf)?;
                }
                Err(_) => return Err(End::Deaf),
            }
        }
        self.pipes.give_back(pipe);
        Ok(count)
    }
}

/// Writes as much as can be written now: how much there was, and what is left.
fn hand_on(to: &WriteHalf<'_>, bytes: &[u8]) -> Result<(usize, Vec<u8>), End> {
    if bytes.is_empty() {
        return Err(End::Finished);
    }
    let written = match to.try_write(bytes) {
        Ok(written) => written,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(_) => return Err(End::Deaf),
    };
    Ok((bytes.len(), bytes.get(written..).unwrap_or_default().to_vec()))
}

#[cfg(test)]
mod tests;
