//! What went wrong with a call, in the words of Go's client.

use std::{error::Error as _, io};

use crate::client::{Address, Error};

/// Why a request did not get an answer.
pub fn of_transport(error: &Error, address: &Address) -> String {
    match error {
        Error::Request(error) => {
            let mut source = error.source();
            while let Some(cause) = source {
                if let Some(io) = cause.downcast_ref::<io::Error>() {
                    return of_io(io, address);
                }
                source = cause.source();
            }
            "EOF".to_owned()
        }
        Error::Body(_) => "unexpected EOF".to_owned(),
        Error::TooLong(limit) => format!("the answer is longer than {limit} bytes"),
    }
}

fn of_io(error: &io::Error, address: &Address) -> String {
    let place = match address {
        Address::Tcp(host, port) if host.contains(':') => format!("tcp [{host}]:{port}"),
        Address::Tcp(host, port) => format!("tcp {host}:{port}"),
        Address::Unix(path) => format!("unix {path}"),
        Address::Abstract(name) => format!("unix @{name}"),
    };
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return of_tls(tls, address);
    }
    match (error.kind(), address) {
        (io::ErrorKind::ConnectionRefused, _) => format!("dial {place}: connect: connection refused"),
        (io::ErrorKind::TimedOut, _) => format!("dial {place}: i/o timeout"),
        (io::ErrorKind::NetworkUnreachable, _) => format!("dial {place}: connect: network is unreachable"),
        (io::ErrorKind::HostUnreachable, _) => format!("dial {place}: connect: no route to host"),
        (io::ErrorKind::ConnectionReset, _) => "read: connection reset by peer".to_owned(),
        (io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe, _) => "EOF".to_owned(),
        // What a resolver says has no kind and no number of its own.
        (_, Address::Tcp(host, _)) if error.raw_os_error().is_none() => {
            format!("dial tcp: lookup {host}: no such host")
        }
        _ => format!("dial {place}: {error}"),
    }
}

fn of_tls(error: &rustls::Error, address: &Address) -> String {
    use rustls::CertificateError as Bad;
    let host = match address {
        Address::Tcp(host, _) => host.as_str(),
        Address::Unix(name) | Address::Abstract(name) => name,
    };
    let why = match error {
        rustls::Error::InvalidCertificate(Bad::UnknownIssuer) => "certificate signed by unknown authority".to_owned(),
        rustls::Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "certificate has expired or is not yet valid".to_owned()
        }
        rustls::Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "certificate has expired or is not yet valid".to_owned()
        }
        rustls::Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            format!("certificate is not valid for any names, but wanted to match {host}")
        }
        rustls::Error::InvalidCertificate(other) => other.to_string(),
        other => return format!("remote error: tls: {other}"),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// What an answer with a bad status means, as client-go says it. `text` is the body, where it is plain text.
pub fn of_status(code: u16, text: Option<&str>) -> String {
    let said = text.map_or("unknown", str::trim);
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => said.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        406 => said.to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        500.. => format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

#[cfg(test)]
mod tests;
