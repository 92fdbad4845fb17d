//! Addresses that servers listen on and clients connect to.

use crate::{
    ConfigText,
    decode::{Cursor, DecodeReport, FieldReader, scalar},
};

/// `endpoint`, `transport` and `dialer` of a server. The host is checked only when the address is bound.
pub(crate) fn listen(fields: &mut FieldReader<'_, '_>, default: &ConfigText) -> ConfigText {
    if let Some(at) = fields.find("transport") {
        let known = [("tcp", true), ("tcp4", true), ("tcp6", true), ("unix", false), ("unixpacket", false)];
        if scalar::keyword(&at, fields.report, &known) == Some(false) {
            let message = "sockets other than TCP are not supported by this build";
            fields.report.error(&at, message, Some("use `transport: tcp`".into()));
        }
    }
    if let Some(at) = fields.find("dialer") {
        let mut dialer = FieldReader::new(&at, fields.report);
        dialer.accept_without_effect(&["timeout"], scalar::nanoseconds);
        dialer.finish();
    }
    fields
        .get("endpoint", |at, report| listen_address(at, report, "endpoint"))
        .map_or_else(|| default.clone(), Into::into)
}

/// An address to listen on: a host and a port, or a port alone for all addresses.
pub(crate) fn listen_address(at: &Cursor<'_>, report: &DecodeReport, field: &str) -> Option<String> {
    let address = scalar::text(at, report)?;
    let problem = match check_host_port(&address) {
        Ok(()) => return Some(address),
        Err(_) if address.is_empty() && at.node.origin.is_none() => format!("the `{field}` is empty"),
        Err(_) if address.is_empty() => format!("`{field}`: {} is empty", at.subject(&address)),
        Err(what) => format!("`{field}`: {}", what.describe(at, &address)),
    };
    report.error(at, problem, Some("write it as host:port, or as :port for all addresses".into()));
    None
}

pub(crate) enum AddressError {
    NoPort,
    TooManyColons,
    Port,
}

impl AddressError {
    pub(crate) fn describe(&self, at: &Cursor<'_>, address: &str) -> String {
        match self {
            Self::NoPort => format!("{} has no port: missing port in address", at.subject(address)),
            Self::TooManyColons => {
                format!("{} has too many colons; put an IPv6 address in brackets", at.subject(address))
            }
            Self::Port => {
                let port = address.rsplit_once(':').map_or("", |(_, port)| port);
                format!("invalid port {}", at.quote(port))
            }
        }
    }
}

/// Checks an address as Go's `SplitHostPort` does, and that its port is a number.
pub(crate) fn check_host_port(address: &str) -> Result<(), AddressError> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(AddressError::NoPort)?;
            (host, after.strip_prefix(':').ok_or(AddressError::NoPort)?)
        }
        None => {
            let (host, port) = address.rsplit_once(':').ok_or(AddressError::NoPort)?;
            if host.contains(':') {
                return Err(AddressError::TooManyColons);
            }
            (host, port)
        }
    };
    let valid = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if valid && !host.contains(['[', ']']) { Ok(()) } else { Err(AddressError::Port) }
}
