//! Error messages of webhook calls, in the format of Go's HTTP client.

use std::{error::Error as _, io};

use crate::client::{DialAddress, HttpClientError};

/// The message for a request without a response.
pub fn transport_error(error: &HttpClientError, address: &DialAddress) -> String {
    match error {
        HttpClientError::Request(error) => {
            let mut source = error.source();
            while let Some(cause) = source {
                if let Some(io) = cause.downcast_ref::<io::Error>() {
                    return io_error(io, address);
                }
                source = cause.source();
            }
            "EOF".to_owned()
        }
        HttpClientError::Body(_) => "unexpected EOF".to_owned(),
        HttpClientError::TooLong(limit) => format!("the response is longer than {limit} bytes"),
    }
}

fn io_error(error: &io::Error, address: &DialAddress) -> String {
    let place = match address {
        DialAddress::Tcp(host, port) if host.contains(':') => format!("tcp [{host}]:{port}"),
        DialAddress::Tcp(host, port) => format!("tcp {host}:{port}"),
        DialAddress::Unix(path) => format!("unix {path}"),
        DialAddress::Abstract(name) => format!("unix @{name}"),
    };
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls_error(tls, address);
    }
    match (error.kind(), address) {
        (io::ErrorKind::ConnectionRefused, _) => format!("dial {place}: connect: connection refused"),
        (io::ErrorKind::TimedOut, _) => format!("dial {place}: i/o timeout"),
        (io::ErrorKind::NetworkUnreachable, _) => format!("dial {place}: connect: network is unreachable"),
        (io::ErrorKind::HostUnreachable, _) => format!("dial {place}: connect: no route to host"),
        (io::ErrorKind::ConnectionReset, _) => "read: connection reset by peer".to_owned(),
        (io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe, _) => "EOF".to_owned(),
        // A resolver's error has no kind and no OS error number.
        (_, DialAddress::Tcp(host, _)) if error.raw_os_error().is_none() => {
            format!("dial tcp: lookup {host}: no such host")
        }
        _ => format!("dial {place}: {error}"),
    }
}

fn tls_error(error: &rustls::Error, address: &DialAddress) -> String {
    use rustls::CertificateError as Bad;
    let host = match address {
        DialAddress::Tcp(host, _) => host.as_str(),
        DialAddress::Unix(name) | DialAddress::Abstract(name) => name,
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

/// The message for a response with an error status, as client-go writes it. `text` is the body, if it is plain
/// text.
pub fn status_error(code: u16, text: Option<&str>) -> String {
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
