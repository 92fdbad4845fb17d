//! The first word of a destination to which nothing was encrypted.
//!
//! A port that expects TLS has nothing sensible to say to somebody who does not speak it: it answers with an alert of TLS, or hangs up. What comes of that in
//! HTTP is an error that tells nobody what to mend, and that has lost its cause on the way. So it is noted here, before HTTP sees it.
//!
//! *Guaranteed*: what is read is not changed. What speaks to somebody without TLS is not suspected of wanting it, from its first word on. *Not
//! done*: connections share one note, so that one that is about to be made takes back what another one has just noted.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{io::ReadBuf, net::TcpStream};

use crate::core::TlsFault;

/// How an alert of TLS begins, in all of its versions.
const ALERT: [u8; 2] = [0x15, 0x03];

const WANTED: u8 = 1;
const PERHAPS_WANTED: u8 = 2;

/// What the first words of the last connection tell of TLS. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstWord(Arc<AtomicU8>);

impl FirstWord {
    /// That the destination wants TLS, if it seems to.
    pub(crate) fn fault(&self) -> Option<TlsFault> {
        match self.0.load(Ordering::Relaxed) {
            WANTED => Some(TlsFault::Wanted),
            PERHAPS_WANTED => Some(TlsFault::PerhapsWanted),
            _ => None,
        }
    }

    /// A connection is about to be made, or the destination has said something.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Looks at the first bytes that arrive, and leaves them where they are. Those of TLS are an error: HTTP might wait for more of them.
    pub(super) fn poll_hear(&self, tcp: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; ALERT.len()];
        let mut heard = ReadBuf::new(&mut bytes);
        let length = ready!(tcp.poll_peek(cx, &mut heard)).inspect_err(|error| self.broke(error))?;
        if heard.filled() == ALERT {
            self.0.store(WANTED, Ordering::Relaxed);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "it expects TLS")));
        }
        match length {
            0 => self.0.store(PERHAPS_WANTED, Ordering::Relaxed),
            _ => self.forget(),
        }
        Poll::Ready(Ok(()))
    }

    /// The connection broke before anything was heard.
    pub(super) fn broke(&self, error: &io::Error) {
        if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) {
            self.0.store(PERHAPS_WANTED, Ordering::Relaxed);
        }
    }
}
