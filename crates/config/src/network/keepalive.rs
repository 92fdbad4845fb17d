//! `keepalive` of gRPC servers and clients.

use std::time::Duration;

use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
};

/// gRPC `keepalive` of a server; a zero duration means "never".
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServerKeepalive {
    /// A connection without calls for this long is closed.
    pub max_connection_idle: Option<Duration>,
    /// A connection of this age is told to go away.
    pub max_connection_age: Option<Duration>,
    /// How long its calls may then still take.
    pub max_connection_age_grace: Option<Duration>,
    /// Ping the client after this long without a sign of it.
    pub time: Option<Duration>,
    /// Close the connection if the ping stays unanswered this long.
    pub timeout: Option<Duration>,
}

/// gRPC `keepalive` of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKeepalive {
    /// Ping the server after this long without a sign of it.
    pub time: Duration,
    /// Close the connection if the ping stays unanswered this long.
    pub timeout: Duration,
    /// Ping even when no call is under way.
    pub permit_without_stream: bool,
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

impl ClientKeepalive {
    pub(crate) fn encode(&self) -> YamlMap {
        YamlMap::default()
            .with_field("time", self.time)
            .with_field("timeout", self.timeout)
            .with_flag("permit_without_stream", self.permit_without_stream)
    }
}

impl ServerKeepalive {
    pub(crate) fn encode(&self) -> YamlMap {
        let parameters = YamlMap::default()
            .with_optional("max_connection_idle", self.max_connection_idle)
            .with_optional("max_connection_age", self.max_connection_age)
            .with_optional("max_connection_age_grace", self.max_connection_age_grace)
            .with_optional("time", self.time)
            .with_optional("timeout", self.timeout);
        YamlMap::default().with_section("server_parameters", parameters)
    }
}
