//! Settings that servers and clients share.

use std::{collections::HashSet, time::Duration};

use super::{
    cursor::Cursor,
    field_reader::FieldReader,
    id,
    report::{AuthUse, ConnectionSide, DecodeReport},
    scalar,
};
use crate::{
    ComponentId, SecretString,
    model::{ClientKeepalive, CompressionType, ServerKeepalive},
    yaml::NodeValue,
};

/// `auth: {authenticator: …}`. The reference is checked after the whole document was read.
pub(crate) fn auth(fields: &mut FieldReader<'_, '_>, side: ConnectionSide) -> Option<ComponentId> {
    let at = fields.find("auth")?;
    let mut auth = FieldReader::new(&at, fields.report);
    let enabled = auth.enabled();
    auth.unsupported(&["request_params"]);
    let place = auth.find("authenticator");
    let id = place.as_ref().and_then(|place| id::reference(place, auth.report));
    match place {
        None if enabled => {
            auth.require(
                "authenticator",
                "`auth` has no `authenticator`",
                Some("set `authenticator` to the id of an extension".into()),
            );
        }
        Some(place) if enabled => auth.report.add_auth_use_at(&place, id.clone(), side),
        _ => {}
    }
    auth.finish();
    id.filter(|_| enabled)
}

impl DecodeReport<'_> {
    fn add_auth_use_at(&self, at: &Cursor<'_>, id: Option<ComponentId>, side: ConnectionSide) {
        if let Some(id) = id {
            self.add_auth_use(AuthUse { id, side, path: at.path().to_owned(), span: at.span() });
        }
    }
}

/// Headers: a map of names and values, or a list of `{name, value}`. Sorted by name, as the Collector sorts a
/// map.
pub(crate) fn headers(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<(String, SecretString)>> {
    let mut headers = Vec::new();
    match &at.node.value {
        NodeValue::Map(entries) => {
            report.mark_keys_public(entries);
            for entry in entries {
                let value = at.entry(entry);
                if let Some(secret) = scalar::secret(&value, report) {
                    headers.push(header(&value, report, entry.key.text.clone(), secret));
                }
            }
            headers.sort_by(|a, b| a.as_ref().map(|(name, _)| name).cmp(&b.as_ref().map(|(name, _)| name)));
        }
        NodeValue::Seq(_) => headers.extend(at.items()?.map(|item| pair(&item, report))),
        NodeValue::Null | NodeValue::Bad => {}
        _ => return scalar::wrong_type(at, report, "a map of names and values", None),
    }
    Some(headers.into_iter().flatten().collect())
}

fn pair(at: &Cursor<'_>, report: &DecodeReport) -> Option<(String, SecretString)> {
    let mut fields = FieldReader::new(at, report);
    let name = fields.text("name");
    let value = fields.get_or("value", SecretString::default(), scalar::secret);
    if name.is_none() {
        fields.require("name", "a header needs a name", None);
    }
    fields.finish();
    header(at, report, name?, value)
}

/// Checks that a header can be sent.
fn header(at: &Cursor<'_>, report: &DecodeReport, name: String, value: SecretString) -> Option<(String, SecretString)> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        report.error(at, "the name of the header contains invalid characters", None);
        return None;
    }
    check_header_value(at, report, &value).then_some((name, value))
}

/// Checks that a secret can be the value of a header, and reports it if it cannot.
pub(crate) fn check_header_value(at: &Cursor<'_>, report: &DecodeReport, value: &SecretString) -> bool {
    let bad = value.reveal().chars().any(|c| c.is_control() && c != '\t');
    if bad {
        let help = value
            .reveal()
            .ends_with('\n')
            .then(|| "remove the line break at the end of the value from its source".into());
        report.error(at, "the value contains control characters, which are not allowed in a header", help);
    }
    !bad
}

/// The names of compression types, in both of the Collector's spellings.
const COMPRESSION_NAMES: [(&str, CompressionType); 9] = [
    ("gzip", CompressionType::Gzip),
    ("zstd", CompressionType::Zstd),
    ("snappy", CompressionType::Snappy),
    ("x-snappy-framed", CompressionType::Snappy),
    ("zlib", CompressionType::Zlib),
    ("deflate", CompressionType::Zlib),
    ("lz4", CompressionType::Lz4),
    ("none", CompressionType::None),
    ("", CompressionType::None),
];

/// `compression` of an HTTP client.
pub(crate) fn compression(at: &Cursor<'_>, report: &DecodeReport) -> Option<CompressionType> {
    scalar::keyword(at, report, &COMPRESSION_NAMES)
}

/// `compression` of a gRPC client, which supports fewer types.
pub(crate) fn grpc_compression(at: &Cursor<'_>, report: &DecodeReport) -> Option<CompressionType> {
    let value = compression(at, report)?;
    if matches!(value, CompressionType::Zlib | CompressionType::Lz4) {
        let help = "gRPC supports gzip, snappy, zstd and none".to_owned();
        report.error(
            at,
            format!("the compression {} cannot be used with gRPC", at.quote(&scalar::text(at, report)?)),
            help,
        );
        return None;
    }
    Some(value)
}

/// `compression_algorithms` of an HTTP server, without duplicates.
pub(crate) fn compression_algorithms(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<CompressionType>> {
    let Some(items) = at.items() else {
        return scalar::wrong_type(at, report, "a list", None);
    };
    let mut seen = HashSet::new();
    Some(items.filter_map(|item| compression(&item, report)).filter(|algorithm| seen.insert(*algorithm)).collect())
}

/// `compression_params`, whose level has no effect.
pub(crate) fn compression_params(fields: &mut FieldReader<'_, '_>) {
    let Some(at) = fields.find("compression_params") else { return };
    let mut params = FieldReader::new(&at, fields.report);
    params.warn_ineffective("level", "the compression level is fixed", scalar::integer);
    params.finish();
}

/// `keepalive` of a gRPC client, with grpc-go's defaults as in the Collector: it pings at most every 10 s, and
/// waits 20 s.
pub(crate) fn client_keepalive(at: &Cursor<'_>, report: &DecodeReport) -> Option<ClientKeepalive> {
    const MIN_PING_INTERVAL: Duration = Duration::from_secs(10);
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    let time = fields.get("time", scalar::loose_duration);
    if time.is_some_and(|time| time < MIN_PING_INTERVAL && !time.is_zero()) {
        report.warning(&fields.cursor_at("time"), "`time` is raised to 10s, the minimum of gRPC clients", None);
    }
    let timeout = fields.get("timeout", scalar::loose_duration).filter(|timeout| !timeout.is_zero());
    let keepalive = ClientKeepalive {
        time: time.unwrap_or(MIN_PING_INTERVAL).max(MIN_PING_INTERVAL),
        timeout: timeout.unwrap_or(Duration::from_secs(20)),
        permit_without_stream: fields.flag("permit_without_stream"),
    };
    fields.finish();
    enabled.then_some(keepalive)
}

/// `keepalive` of a gRPC server.
pub(crate) fn server_keepalive(at: &Cursor<'_>, report: &DecodeReport) -> Option<ServerKeepalive> {
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    let parameters = fields.get("server_parameters", |at, report| {
        let mut fields = FieldReader::new(at, report);
        let enabled = fields.enabled();
        let mut span = |name| fields.get(name, scalar::loose_duration).filter(|span| !span.is_zero());
        let keepalive = ServerKeepalive {
            max_connection_idle: span("max_connection_idle"),
            max_connection_age: span("max_connection_age"),
            max_connection_age_grace: span("max_connection_age_grace"),
            time: span("time"),
            timeout: span("timeout"),
        };
        fields.finish();
        enabled.then_some(keepalive)
    });
    if let Some(at) = fields.find("enforcement_policy") {
        let mut policy = FieldReader::new(&at, report);
        policy.enabled();
        policy.warn_ineffective("min_time", "the server accepts pings at any interval", scalar::nanoseconds);
        policy.accept_without_effect(&["permit_without_stream"], scalar::boolean);
        policy.finish();
    }
    fields.finish();
    parameters.filter(|_| enabled)
}

/// `endpoint`, `transport` and `dialer` of a server. The host is checked only when the address is bound.
pub(crate) fn listen(fields: &mut FieldReader<'_, '_>, default: &str) -> String {
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
    fields.get("endpoint", |at, report| listen_address(at, report, "endpoint")).unwrap_or_else(|| default.to_owned())
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
