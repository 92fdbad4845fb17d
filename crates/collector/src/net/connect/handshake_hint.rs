//! Inspection of a destination's first bytes, to recognize misconfigured TLS.
//!
//! A port that expects TLS answers a client without it with a TLS alert, or closes the connection. A server
//! that requires a client certificate may say so only after the client's side of the handshake is complete, in
//! an alert that is lost when the connection is reset behind it. In HTTP, either becomes an error that has lost
//! its cause. So the cause is recorded here, before HTTP reads the bytes.
//!
//! *Guaranteed*: the bytes are not changed. A destination that speaks leaves no hint, from its first byte on.
//! *Not done*: connections share one hint, so that a new connection may erase what another one has just
//! recorded.

use std::{
    error::Error as StdError,
    io,
    pin::Pin,
    sync::{Arc, MutexGuard},
    task::{Context, Poll, ready},
};

use kubewake_runtime::lock::Mutex;
use rustls::{ClientConfig, SignatureScheme, client::ResolvesClientCert, sign::CertifiedKey};
use tokio::{io::ReadBuf, net::TcpStream};
use tokio_rustls::{Connect, client::TlsStream};

use super::{ConnectError, connect_fault::tls_fault};
use crate::core::TlsFault;

/// The first bytes of a TLS alert, in all versions.
const TLS_ALERT_PREFIX: [u8; 2] = [0x15, 0x03];

/// The hint about TLS from the last connection. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandshakeHint(Arc<Mutex<HintState>>);

#[derive(Debug, Default)]
struct HintState {
    fault: Option<TlsFault>,
    /// Whether the destination asked for a client certificate, and got none.
    certificate_requested: bool,
}

impl HandshakeHint {
    /// The TLS fault, if that is why an attempt failed.
    pub(crate) fn tls_fault(&self, error: &(dyn StdError + 'static)) -> Option<TlsFault> {
        let note = self.state();
        match tls_fault(error).or(note.fault) {
            // Few destinations say explicitly that they require a certificate.
            Some(TlsFault::Refused) if note.certificate_requested => Some(TlsFault::CertificateWanted),
            fault => fault,
        }
    }

    /// The same settings, with a resolver that records requests for a client certificate if none is configured.
    pub(super) fn with_cert_request_recorder(&self, config: Arc<ClientConfig>) -> Arc<ClientConfig> {
        if config.client_auth_cert_resolver.has_certs() {
            return config;
        }
        let mut config = Arc::unwrap_or_clone(config);
        config.client_auth_cert_resolver = Arc::new(CertRequestRecorder(self.clone()));
        Arc::new(config)
    }

    /// Called when a connection is about to be made, and when the destination has sent data, which shows that
    /// it does without a certificate that it may have asked for.
    pub(crate) fn reset(&self) {
        *self.state() = HintState::default();
    }

    /// Peeks at the first bytes that arrive. Those of a TLS alert are an error, since HTTP might wait for more
    /// of them.
    pub(super) fn poll_first_bytes(&self, tcp: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; TLS_ALERT_PREFIX.len()];
        let mut heard = ReadBuf::new(&mut bytes);
        let length = ready!(tcp.poll_peek(cx, &mut heard)).inspect_err(|error| self.record_plain_error(error))?;
        if heard.filled() == TLS_ALERT_PREFIX {
            self.state().fault = Some(TlsFault::Wanted);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the server expects TLS")));
        }
        match length {
            0 => self.state().fault = Some(TlsFault::PerhapsWanted),
            _ => self.reset(),
        }
        Poll::Ready(Ok(()))
    }

    /// A connection without TLS broke before anything was received.
    pub(super) fn record_plain_error(&self, error: &io::Error) {
        if is_hung_up(error) {
            self.state().fault = Some(TlsFault::PerhapsWanted);
        }
    }

    /// A connection with TLS broke after the handshake, before anything was received.
    pub(super) fn record_tls_error(&self, error: &io::Error) {
        let mut note = self.state();
        note.fault = match tls_fault(error) {
            // A reset may overtake the alert before it.
            None | Some(TlsFault::Refused) if note.certificate_requested => Some(TlsFault::CertificateWanted),
            fault => fault,
        };
    }

    fn state(&self) -> MutexGuard<'_, HintState> {
        self.0.lock()
    }
}

/// Completes a handshake. A peer that closes the connection without sending anything is told apart from one
/// that has begun its side of the handshake.
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
    shaken.map_err(
        |error| if !is_heard && is_hung_up(&error) { ConnectError::HungUp(error) } else { ConnectError::Tls(error) },
    )
}

fn is_hung_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | BrokenPipe | UnexpectedEof)
}

/// Provides no certificate, and records that one was requested.
#[derive(Debug)]
struct CertRequestRecorder(HandshakeHint);

impl ResolvesClientCert for CertRequestRecorder {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.state().certificate_requested = true;
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
