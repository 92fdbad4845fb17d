//! Classification of connection and TLS errors by who can fix them.

use std::{error::Error as StdError, io};

use rustls::{AlertDescription, CertificateError, Error};

use super::ConnectError;
use crate::core::{BackendStatus, ConnectFault, TlsFault};

/// The message of hyper-util if a host name could not be resolved. Its error type is private.
const DNS_ERROR_MESSAGE: &str = "dns error";
/// The messages of C libraries if no name server answered: glibc's, and musl's.
const NO_NAME_SERVER_MESSAGES: [&str; 2] = ["Temporary failure in name resolution", "Try again"];

/// Why an attempt failed, if that is known: a TLS fault first, then a connection fault.
pub(crate) fn backend_status(error: &(dyn StdError + 'static), tls: Option<TlsFault>) -> Option<BackendStatus> {
    tls.map(BackendStatus::Tls).or_else(|| connect_fault(error).map(BackendStatus::Connect))
}

/// Why there is no connection, if the error says so. An error of an established connection is none.
fn connect_fault(error: &(dyn StdError + 'static)) -> Option<ConnectFault> {
    let mut last = error;
    let mut is_of_tcp = false;
    let mut is_of_dns = false;
    loop {
        is_of_tcp |= matches!(last.downcast_ref(), Some(ConnectError::Tcp(_)));
        is_of_dns |= last.to_string() == DNS_ERROR_MESSAGE;
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
        let is_silent = NO_NAME_SERVER_MESSAGES.iter().any(|known| words.contains(known));
        return Some(if is_silent { ConnectFault::DnsFailed } else { ConnectFault::NameNotFound });
    }
    match last.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::ConnectionRefused => Some(ConnectFault::Refused),
        io::ErrorKind::TimedOut => Some(ConnectFault::Timeout),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some(ConnectFault::Unreachable),
        _ => None,
    }
}

/// The TLS fault that an error reports as the cause of a failed attempt.
pub(crate) fn tls_fault(error: &(dyn StdError + 'static)) -> Option<TlsFault> {
    let mut next = Some(error);
    let mut known = None;
    while let Some(cause) = next {
        // An I/O error does not return its inner error as its source.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref()).or_else(|| cause.downcast_ref()) {
            return Some(from_rustls_error(error));
        }
        known = match cause.downcast_ref() {
            // A peer that closes the connection during a handshake gives no reason.
            Some(ConnectError::Tls(_)) => Some(TlsFault::Refused),
            Some(ConnectError::HungUp(_)) => Some(TlsFault::PerhapsNoTls),
            _ => known,
        };
        next = cause.source();
    }
    known
}

fn from_rustls_error(error: &Error) -> TlsFault {
    match error {
        Error::InvalidCertificate(why) => from_certificate_error(why),
        Error::AlertReceived(AlertDescription::CertificateRequired) => TlsFault::CertificateWanted,
        Error::AlertReceived(_) | Error::PeerIncompatible(_) => TlsFault::Refused,
        Error::InvalidMessage(_) => TlsFault::NoTls,
        _ => TlsFault::Other,
    }
}

fn from_certificate_error(why: &CertificateError) -> TlsFault {
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
