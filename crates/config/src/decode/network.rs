//! What components that serve or call have in common.

use std::{collections::HashSet, time::Duration};

use super::{
    cursor::Cursor,
    fields::Fields,
    id,
    report::{AuthUse, Report, Side},
    scalar,
};
use crate::{
    ComponentId, Secret,
    model::{ClientKeepalive, Compression, ServerKeepalive},
    yaml::Value,
};

/// `auth: {authenticator: …}`. Whether it exists is checked when the whole document was read.
pub(crate) fn auth(fields: &mut Fields<'_, '_>, side: Side) -> Option<ComponentId> {
    let at = fields.find("auth")?;
    let mut auth = Fields::of(&at, fields.report);
    let enabled = auth.enabled();
    auth.unsupported(&["request_params"]);
    let place = auth.find("authenticator");
    let id = place.as_ref().and_then(|place| id::reference(place, auth.report));
    match place {
        None if enabled => {
            auth.require(
                "authenticator",
                "`auth` names no authenticator",
                Some("set `authenticator` to the id of an extension".into()),
            );
        }
        Some(place) if enabled => auth.report.uses_auth_at(&place, id.clone(), side),
        _ => {}
    }
    auth.finish();
    id.filter(|_| enabled)
}

impl Report {
    fn uses_auth_at(&self, at: &Cursor<'_>, id: Option<ComponentId>, side: Side) {
        if let Some(id) = id {
            self.uses_auth(AuthUse { id, side, path: at.path().to_owned(), span: at.span() });
        }
    }
}

/// Headers: a map of names and values, or a list of `{name, value}`. Sorted by name, as the Collector has a map's.
pub(crate) fn headers(at: &Cursor<'_>, report: &Report) -> Option<Vec<(String, Secret)>> {
    let mut headers = Vec::new();
    match &at.node.value {
        Value::Map(entries) => {
            report.has_public_keys(entries);
            for entry in entries {
                let value = at.entry(entry);
                if let Some(secret) = scalar::secret(&value, report) {
                    headers.push(header(&value, report, entry.key.text.clone(), secret));
                }
            }
            headers.sort_by(|a, b| a.as_ref().map(|(name, _)| name).cmp(&b.as_ref().map(|(name, _)| name)));
        }
        Value::Seq(_) => headers.extend(at.items()?.map(|item| pair(&item, report))),
        Value::Null | Value::Bad => {}
        _ => return scalar::wrong_type(at, report, "a map of names and values", None),
    }
    Some(headers.into_iter().flatten().collect())
}

fn pair(at: &Cursor<'_>, report: &Report) -> Option<(String, Secret)> {
    let mut fields = Fields::of(at, report);
    let name = fields.text("name");
    let value = fields.get_or("value", Secret::default(), scalar::secret);
    if name.is_none() {
        fields.require("name", "a header needs a name", None);
    }
    fields.finish();
    header(at, report, name?, value)
}

/// A header that can be sent.
fn header(at: &Cursor<'_>, report: &Report, name: String, value: Secret) -> Option<(String, Secret)> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        report.error(at, "the name of the header has characters that a header name cannot have", None);
        return None;
    }
    sendable(at, report, &value).then_some((name, value))
}

/// Whether a secret can stand in a header; says so if it cannot.
pub(crate) fn sendable(at: &Cursor<'_>, report: &Report, value: &Secret) -> bool {
    let bad = value.reveal().chars().any(|c| c.is_control() && c != '\t');
    if bad {
        let help =
            value.reveal().ends_with('\n').then(|| "it ends with a line break: remove that from its source".into());
        report.error(at, "the value has control characters in it, which a header cannot have", help);
    }
    !bad
}

/// The names of compression; both families of the Collector's names.
const COMPRESSIONS: [(&str, Compression); 9] = [
    ("gzip", Compression::Gzip),
    ("zstd", Compression::Zstd),
    ("snappy", Compression::Snappy),
    ("x-snappy-framed", Compression::Snappy),
    ("zlib", Compression::Zlib),
    ("deflate", Compression::Zlib),
    ("lz4", Compression::Lz4),
    ("none", Compression::None),
    ("", Compression::None),
];

/// `compression` of an HTTP client.
pub(crate) fn compression(at: &Cursor<'_>, report: &Report) -> Option<Compression> {
    scalar::keyword(at, report, &COMPRESSIONS)
}

/// `compression` of a gRPC client, which has fewer.
pub(crate) fn grpc_compression(at: &Cursor<'_>, report: &Report) -> Option<Compression> {
    let value = compression(at, report)?;
    if matches!(value, Compression::Zlib | Compression::Lz4) {
        let help = "gRPC has gzip, snappy, zstd and none".to_owned();
        report.error(
            at,
            format!("the compression {} cannot be used with gRPC", at.quote(&scalar::text(at, report)?)),
            help,
        );
        return None;
    }
    Some(value)
}

/// `compression_algorithms` of an HTTP server, each once.
pub(crate) fn compression_algorithms(at: &Cursor<'_>, report: &Report) -> Option<Vec<Compression>> {
    let Some(items) = at.items() else {
        return scalar::wrong_type(at, report, "a list", None);
    };
    let mut seen = HashSet::new();
    Some(items.filter_map(|item| compression(&item, report)).filter(|algorithm| seen.insert(*algorithm)).collect())
}

/// `compression_params`, whose level has no effect.
pub(crate) fn compression_params(fields: &mut Fields<'_, '_>) {
    let Some(at) = fields.find("compression_params") else { return };
    let mut params = Fields::of(&at, fields.report);
    params.ineffective("level", "the level of compression is fixed", scalar::integer);
    params.finish();
}

/// `keepalive` of a gRPC client. grpc-go pings at most every 10 s and waits 20 s by default, and so the Collector.
pub(crate) fn client_keepalive(at: &Cursor<'_>, report: &Report) -> Option<ClientKeepalive> {
    const LEAST: Duration = Duration::from_secs(10);
    let mut fields = Fields::of(at, report);
    let enabled = fields.enabled();
    let time = fields.get("time", scalar::loose_duration);
    if time.is_some_and(|time| time < LEAST && !time.is_zero()) {
        report.warning(&fields.place("time"), "`time` is raised to 10s, the least that servers tolerate", None);
    }
    let timeout = fields.get("timeout", scalar::loose_duration).filter(|timeout| !timeout.is_zero());
    let keepalive = ClientKeepalive {
        time: time.unwrap_or(LEAST).max(LEAST),
        timeout: timeout.unwrap_or(Duration::from_secs(20)),
        permit_without_stream: fields.flag("permit_without_stream"),
    };
    fields.finish();
    enabled.then_some(keepalive)
}

/// `keepalive` of a gRPC server.
pub(crate) fn server_keepalive(at: &Cursor<'_>, report: &Report) -> Option<ServerKeepalive> {
    let mut fields = Fields::of(at, report);
    let enabled = fields.enabled();
    let parameters = fields.get("server_parameters", |at, report| {
        let mut fields = Fields::of(at, report);
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
        let mut policy = Fields::of(&at, report);
        policy.enabled();
        policy.ineffective("min_time", "clients may ping as often as they like", scalar::nanoseconds);
        policy.idle(&["permit_without_stream"], scalar::boolean);
        policy.finish();
    }
    fields.finish();
    parameters.filter(|_| enabled)
}

/// `endpoint`, `transport` and `dialer` of a server. The endpoint is only checked to be text: what it means is known
/// when it is bound.
pub(crate) fn listen(fields: &mut Fields<'_, '_>, default: &str) -> String {
    if let Some(at) = fields.find("transport") {
        let known = [("tcp", true), ("tcp4", true), ("tcp6", true), ("unix", false), ("unixpacket", false)];
        if scalar::keyword(&at, fields.report, &known) == Some(false) {
            let message = "sockets other than TCP's are not supported by this build";
            fields.report.error(&at, message, Some("use `transport: tcp`".into()));
        }
    }
    if let Some(at) = fields.find("dialer") {
        let mut dialer = Fields::of(&at, fields.report);
        dialer.idle(&["timeout"], scalar::nanoseconds);
        dialer.finish();
    }
    fields.get("endpoint", scalar::text).unwrap_or_else(|| default.to_owned())
}
