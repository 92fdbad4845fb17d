//! The first word of a destination, as far as it tells what is wrong with TLS.
//!
//! A port that expects TLS has nothing sensible to say to somebody who does not speak it: it answers with an alert of TLS, or hangs up. One that wants a
//! certificate of ours may say so when the handshake is over for us, in an alert that nothing is left of when the connection is reset behind it. What comes of either in
//! HTTP is an error that tells nobody what to mend, and that has lost its cause on the way. So it is noted here, before HTTP sees it.
//!
//! *Guaranteed*: what is read is not changed. Nothing is noted of what speaks, from its first word on. *Not
//! done*: connections share one note, so that one that is about to be made takes back what another one has just noted.

use std::{
    error::Error as StdError,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use rustls::{ClientConfig, SignatureScheme, client::ResolvesClientCert, sign::CertifiedKey};
use tokio::{io::ReadBuf, net::TcpStream};
use tokio_rustls::{Connect, client::TlsStream};

use super::{ConnectError, fault::fault};
use crate::core::TlsFault;

/// How an alert of TLS begins, in all of its versions.
const ALERT: [u8; 2] = [0x15, 0x03];

/// What the first words of the last connection tell of TLS. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstWord(Arc<Mutex<Note>>);

#[derive(Debug, Default)]
struct Note {
    fault: Option<TlsFault>,
    /// Whether the destination asked for a certificate, and got none.
    is_asked: bool,
}

impl FirstWord {
    /// What is wrong with TLS, if that is why an attempt failed.
    pub(crate) fn fault(&self, error: &(dyn StdError + 'static)) -> Option<TlsFault> {
        let note = self.note();
        match fault(error).or(note.fault) {
            // Few say it in so many words.
            Some(TlsFault::Refused) if note.is_asked => Some(TlsFault::CertificateWanted),
            fault => fault,
        }
    }

    /// The same settings, and whether the other end asks for a certificate that we do not have is noted.
    pub(super) fn witness(&self, config: Arc<ClientConfig>) -> Arc<ClientConfig> {
        if config.client_auth_cert_resolver.has_certs() {
            return config;
        }
        let mut config = Arc::unwrap_or_clone(config);
        config.client_auth_cert_resolver = Arc::new(Witness(self.clone()));
        Arc::new(config)
    }

    /// A connection is about to be made, or the destination has said something, and so does without what it may have asked for.
    pub(crate) fn forget(&self) {
        *self.note() = Note::default();
    }

    /// Looks at the first bytes that arrive, and leaves them where they are. Those of TLS are an error: HTTP might wait for more of them.
    pub(super) fn poll_hear(&self, tcp: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; ALERT.len()];
        let mut heard = ReadBuf::new(&mut bytes);
        let length = ready!(tcp.poll_peek(cx, &mut heard)).inspect_err(|error| self.broke(error))?;
        if heard.filled() == ALERT {
            self.note().fault = Some(TlsFault::Wanted);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "it expects TLS")));
        }
        match length {
            0 => self.note().fault = Some(TlsFault::PerhapsWanted),
            _ => self.forget(),
        }
        Poll::Ready(Ok(()))
    }

    /// A connection without TLS broke before anything was heard.
    pub(super) fn broke(&self, error: &io::Error) {
        if is_hung_up(error) {
            self.note().fault = Some(TlsFault::PerhapsWanted);
        }
    }

    /// A connection with TLS broke after the handshake, and before anything was heard.
    pub(super) fn broke_off(&self, error: &io::Error) {
        let mut note = self.note();
        note.fault = match fault(error) {
            // A reset may be faster than the alert before it.
            None | Some(TlsFault::Refused) if note.is_asked => Some(TlsFault::CertificateWanted),
            fault => fault,
        };
    }

    fn note(&self) -> MutexGuard<'_, Note> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handshake to its end. Who hangs up without a word on ours is told from who has begun one of its own.
pub(super) async fn handshake(mut connect: Connect<TcpStream>) -> Result<TlsStream<TcpStream>, ConnectError> {
    let mut is_heard = false;
    let shaken = std::future::poll_fn(|cx| {
        if !is_heard && let Some(tcp) = connect.get_ref() {
            let mut byte = [0];
            let peeked = tcp.poll_peek(cx, &mut ReadBuf::new(&mut byte));
            is_heard = matches!(peeked, Poll::Ready(Ok(1..)));
        }
        Pin::new(&mut connect).poll(cx)
    });
    let shaken = shaken.await;
    shaken.map_err(|error| match !is_heard && is_hung_up(&error) {
        true => ConnectError::Wordless(error),
        false => ConnectError::Tls(error),
    })
}

fn is_hung_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | BrokenPipe | UnexpectedEof)
}

/// Has no certificate, and notes who asks for one.
#[derive(Debug)]
struct Witness(FirstWord);

impl ResolvesClientCert for Witness {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.note().is_asked = true;
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
