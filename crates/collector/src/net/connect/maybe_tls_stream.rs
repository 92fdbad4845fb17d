//! A connection with or without TLS.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::handshake_hint::HandshakeHint;

pub(crate) struct MaybeTlsStream(StreamKind);

enum StreamKind {
    Plain(TokioIo<TcpStream>, Option<HandshakeHint>),
    // Boxed because the state of a TLS session is large.
    Tls(Box<TokioIo<TlsStream<TcpStream>>>, Option<HandshakeHint>),
}

impl MaybeTlsStream {
    /// A plain connection; its first bytes are inspected.
    pub(super) fn plain(tcp: TokioIo<TcpStream>, first: HandshakeHint) -> Self {
        Self(StreamKind::Plain(tcp, Some(first)))
    }

    /// A connection after the TLS handshake; its first bytes are inspected.
    pub(super) fn tls(tls: TlsStream<TcpStream>, first: HandshakeHint) -> Self {
        Self(StreamKind::Tls(Box::new(TokioIo::new(tls)), Some(first)))
    }
}

impl Connection for MaybeTlsStream {
    fn connected(&self) -> Connected {
        match &self.0 {
            StreamKind::Tls(tls, _) if tls.inner().get_ref().1.alpn_protocol() == Some(super::ALPN_H2) => {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

impl Read for MaybeTlsStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(tcp, first) => {
                if let Some(word) = first {
                    ready!(word.poll_first_bytes(tcp.inner(), cx))?;
                    *first = None;
                }
                Pin::new(tcp).poll_read(cx, buf)
            }
            StreamKind::Tls(tls, first) => {
                let read = ready!(Pin::new(tls).poll_read(cx, buf));
                if let Some(word) = first.take() {
                    read.as_ref().map_or_else(|error| word.record_tls_error(error), |()| word.reset());
                }
                Poll::Ready(read)
            }
        }
    }
}

impl Write for MaybeTlsStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            StreamKind::Plain(tcp, first) => {
                Pin::new(tcp).poll_write(cx, buf).map_err(|error| inspect_plain_error(first.as_ref(), error))
            }
            StreamKind::Tls(tls, first) => {
                Pin::new(tls).poll_write(cx, buf).map_err(|error| inspect_tls_error(first.as_ref(), error))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(tcp, _) => Pin::new(tcp).poll_flush(cx),
            StreamKind::Tls(tls, first) => {
                Pin::new(tls).poll_flush(cx).map_err(|error| inspect_tls_error(first.as_ref(), error))
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(tcp, _) => Pin::new(tcp).poll_shutdown(cx),
            StreamKind::Tls(tls, _) => Pin::new(tls).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            StreamKind::Plain(tcp, _) => tcp.is_write_vectored(),
            StreamKind::Tls(tls, _) => tls.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            StreamKind::Plain(tcp, first) => {
                Pin::new(tcp).poll_write_vectored(cx, bufs).map_err(|error| inspect_plain_error(first.as_ref(), error))
            }
            StreamKind::Tls(tls, first) => {
                Pin::new(tls).poll_write_vectored(cx, bufs).map_err(|error| inspect_tls_error(first.as_ref(), error))
            }
        }
    }
}

/// The same error, recorded if nothing was received before.
fn inspect_plain_error(first: Option<&HandshakeHint>, error: io::Error) -> io::Error {
    first.into_iter().for_each(|word| word.record_plain_error(&error));
    error
}

fn inspect_tls_error(first: Option<&HandshakeHint>, error: io::Error) -> io::Error {
    first.into_iter().for_each(|word| word.record_tls_error(&error));
    error
}
