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

use super::first::FirstWord;

/// A connection.
pub(crate) struct Stream(Kind);

enum Kind {
    Plain(TokioIo<TcpStream>, Option<FirstWord>),
    // The state of a TLS session is large, and most connections are made once and kept.
    Tls(Box<TokioIo<TlsStream<TcpStream>>>, Option<FirstWord>),
}

impl Stream {
    /// One whose first word is noted.
    pub(super) fn plain(tcp: TokioIo<TcpStream>, first: FirstWord) -> Self {
        Self(Kind::Plain(tcp, Some(first)))
    }

    /// One after its handshake, whose first word is noted.
    pub(super) fn tls(tls: TlsStream<TcpStream>, first: FirstWord) -> Self {
        Self(Kind::Tls(Box::new(TokioIo::new(tls)), Some(first)))
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match &self.0 {
            Kind::Tls(tls, _) if tls.inner().get_ref().1.alpn_protocol() == Some(super::H2) => {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(tcp, first) => {
                if let Some(word) = first {
                    ready!(word.poll_hear(tcp.inner(), cx))?;
                    *first = None;
                }
                Pin::new(tcp).poll_read(cx, buf)
            }
            Kind::Tls(tls, first) => {
                let read = ready!(Pin::new(tls).poll_read(cx, buf));
                if let Some(word) = first.take() {
                    read.as_ref().map_or_else(|error| word.broke_off(error), |()| word.forget());
                }
                Poll::Ready(read)
            }
        }
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Plain(tcp, first) => {
                Pin::new(tcp).poll_write(cx, buf).map_err(|error| unheard(first.as_ref(), error))
            }
            Kind::Tls(tls, first) => {
                Pin::new(tls).poll_write(cx, buf).map_err(|error| broken_off(first.as_ref(), error))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(tcp, _) => Pin::new(tcp).poll_flush(cx),
            Kind::Tls(tls, first) => Pin::new(tls).poll_flush(cx).map_err(|error| broken_off(first.as_ref(), error)),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(tcp, _) => Pin::new(tcp).poll_shutdown(cx),
            Kind::Tls(tls, _) => Pin::new(tls).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Kind::Plain(tcp, _) => tcp.is_write_vectored(),
            Kind::Tls(tls, _) => tls.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Plain(tcp, first) => {
                Pin::new(tcp).poll_write_vectored(cx, bufs).map_err(|error| unheard(first.as_ref(), error))
            }
            Kind::Tls(tls, first) => {
                Pin::new(tls).poll_write_vectored(cx, bufs).map_err(|error| broken_off(first.as_ref(), error))
            }
        }
    }
}

/// The same error, noted if nothing was heard before.
fn unheard(first: Option<&FirstWord>, error: io::Error) -> io::Error {
    first.into_iter().for_each(|word| word.broke(&error));
    error
}

/// As [`unheard`], with TLS.
fn broken_off(first: Option<&FirstWord>, error: io::Error) -> io::Error {
    first.into_iter().for_each(|word| word.broke_off(&error));
    error
}
