//! Why a connection, or TLS on it, came to nothing, as far as it says who can mend it.

use std::{error::Error as StdError, io};

use rustls::{AlertDescription, CertificateError, Error};

use super::ConnectError;
use crate::core::{ConnectFault, Said, TlsFault};

/// What hyper-util says of a host name that could not be resolved. Its error type is private.
const DNS_ERROR: &str = "dns error";
/// What C libraries say where no name server answered: glibc's words, and musl's.
const NO_NAME_SERVER: [&str; 2] = ["Temporary failure in name resolution", "Try again"];

/// Why an attempt failed, if that is known: what is wrong with TLS, or else with the connection.
pub(crate) fn said(error: &(dyn StdError + 'static), tls: Option<TlsFault>) -> Option<Said> {
    tls.map(Said::Tls).or_else(|| unconnected(error).map(Said::Connect))
}

/// Why there is no connection, if an error says that there is none and why. One that broke later was there.
fn unconnected(error: &(dyn StdError + 'static)) -> Option<ConnectFault> {
    let (mut last, mut is_of_tcp, mut is_of_dns) = (error, false, false);
    loop {
        is_of_tcp |= matches!(last.downcast_ref(), Some(ConnectError::Tcp(_)));
        is_of_dns |= last.to_string() == DNS_ERROR;
        match last.source() {
            Some(cause) => last = cause,
            None => break,
        }
    }
    if !is_of_tcp {
        return None;
    }
    if is_of_dns {
        let words = last.to_string();
        let is_silent = NO_NAME_SERVER.iter().any(|known| words.contains(known));
        return Some(if is_silent { ConnectFault::DnsFailed } else { ConnectFault::NameNotFound });
    }
    match last.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::ConnectionRefused => Some(ConnectFault::Refused),
        io::ErrorKind::TimedOut => Some(ConnectFault::Timeout),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some(ConnectFault::Unreachable),
        _ => None,
    }
}

/// What is wrong with TLS, if an error says that this is why an attempt failed.
pub(crate) fn fault(error: &(dyn StdError + 'static)) -> Option<TlsFault> {
    let (mut next, mut known) = (Some(error), None);
    while let Some(cause) = next {
        // An I/O error does not show what it is made of as its source.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref()).or_else(|| cause.downcast_ref()) {
            return Some(of(error));
        }
        known = match cause.downcast_ref() {
            // Who hangs up in the middle of a handshake does not say why.
            Some(ConnectError::Tls(_)) => Some(TlsFault::Refused),
            Some(ConnectError::Wordless(_)) => Some(TlsFault::PerhapsNoTls),
            _ => known,
        };
        next = cause.source();
    }
    known
}

fn of(error: &Error) -> TlsFault {
    match error {
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::AlertReceived(AlertDescription::CertificateRequired) => TlsFault::CertificateWanted,
        Error::AlertReceived(_) | Error::PeerIncompatible(_) => TlsFault::Refused,
        Error::InvalidMessage(_) => TlsFault::NoTls,
        _ => TlsFault::Other,
    }
}

fn of_certificate(why: &CertificateError) -> TlsFault {
    match why {
        CertificateError::UnknownIssuer => TlsFault::UnknownAuthority,
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => TlsFault::Expired,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsFault::WrongName,
        _ => TlsFault::InvalidCertificate,
    }
}
