//! Why TLS came to nothing, as far as it says who can mend it.

use std::{error::Error as StdError, io};

use rustls::{AlertDescription, CertificateError, Error};

use super::ConnectError;
use crate::core::TlsFault;

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
