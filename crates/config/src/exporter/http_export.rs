//! Settings that all exporters over HTTP share.

use std::{path::PathBuf, time::Duration};

use crate::{
    ComponentId, SecretString,
    decode::{ConnectionSide, FieldReader, scalar},
    encode::YamlMap,
    network::{self, ClientTls, CompressionType, tls},
    sending::{self, QueueConfig, RetryConfig},
};

/// How an exporter connects to its destination over HTTP, and how it repeats and queues its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpExportConfig {
    pub tls: ClientTls,
    pub compression: CompressionType,
    pub headers: Vec<(String, SecretString)>,
    pub auth: Option<ComponentId>,
    /// `timeout` of one attempt; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`; `None` when it is switched off.
    pub retry: Option<RetryConfig>,
    /// `sending_queue`; `None` when it is switched off.
    pub queue: Option<QueueConfig>,
}

impl Default for HttpExportConfig {
    fn default() -> Self {
        Self {
            tls: ClientTls::default(),
            compression: CompressionType::Gzip,
            headers: Vec::new(),
            auth: None,
            timeout: Some(Duration::from_secs(30)),
            retry: Some(RetryConfig::default()),
            queue: Some(QueueConfig::default()),
        }
    }
}

impl HttpExportConfig {
    /// Adds the shared fields, as [`HttpExportConfig::read`] reads them.
    pub(crate) fn encode(&self, map: YamlMap) -> YamlMap {
        self.encode_sending(self.encode_connection(map))
    }

    /// Adds the shared fields of an exporter with another default timeout.
    pub(crate) fn encode_with_timeout(&self, map: YamlMap, default: Duration) -> YamlMap {
        let map = self.encode_connection(map);
        sending::encode(map, self.timeout, default, self.retry.as_ref(), self.queue.as_ref())
    }

    /// Adds the fields of the connection.
    pub(crate) fn encode_connection(&self, map: YamlMap) -> YamlMap {
        let default = Self::default().compression;
        self.encode_uncompressed_connection(map.with_changed("compression", self.compression.name(), default.name()))
    }

    fn encode_uncompressed_connection(&self, map: YamlMap) -> YamlMap {
        map.with_section("tls", self.tls.encode())
            .with_list("headers", network::encode_headers(&self.headers))
            .with_optional("auth", self.auth.as_ref().map(network::encode_auth))
    }

    /// Adds timeout, retries and queue.
    pub(crate) fn encode_sending(&self, map: YamlMap) -> YamlMap {
        let default_timeout = Self::default().timeout.unwrap_or_default();
        sending::encode(map, self.timeout, default_timeout, self.retry.as_ref(), self.queue.as_ref())
    }

    /// Adds the shared fields, as [`HttpExportConfig::read_uncompressed`] reads them.
    pub(crate) fn encode_uncompressed(&self, map: YamlMap) -> YamlMap {
        self.encode_sending(self.encode_uncompressed_connection(map))
    }

    /// Reads the shared fields, with the defaults of [`HttpExportConfig::default`] for timeout and compression.
    pub(crate) fn read(fields: &mut FieldReader<'_, '_>) -> Self {
        let compression = fields.get_or("compression", CompressionType::Gzip, network::compression);
        network::compression_params(fields);
        Self { compression, ..Self::read_uncompressed(fields) }
    }

    /// Reads the shared fields of an exporter whose requests have a compression of their own.
    pub(crate) fn read_uncompressed(fields: &mut FieldReader<'_, '_>) -> Self {
        skip_ineffective_fields(fields);
        let default_timeout = Self::default().timeout.unwrap_or_default();
        Self {
            tls: fields.get("tls", tls::client).unwrap_or_default(),
            compression: CompressionType::None,
            headers: fields.get("headers", network::headers).unwrap_or_default(),
            auth: network::auth(fields, ConnectionSide::Client),
            timeout: sending::timeout(fields, default_timeout),
            retry: sending::retry(fields),
            queue: sending::queue(fields),
        }
    }

    /// The files that the settings name.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.tls.files()
    }

    /// The extension that authenticates requests, if there is one.
    pub(crate) fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.auth.iter().collect()
    }
}

fn skip_ineffective_fields(fields: &mut FieldReader<'_, '_>) {
    let numbers =
        ["read_buffer_size", "write_buffer_size", "max_idle_conns", "max_idle_conns_per_host", "max_conns_per_host"];
    fields.accept_without_effect(&numbers, scalar::integer);
    fields.accept_without_effect(
        &["idle_conn_timeout", "http2_read_idle_timeout", "http2_ping_timeout"],
        scalar::nanoseconds,
    );
    fields.accept_without_effect(&["force_attempt_http2"], scalar::boolean);
    if let Some(at) = fields.find("disable_keep_alives")
        && scalar::boolean(&at, fields.report) == Some(true)
    {
        fields.report.warning(
            &at,
            "`disable_keep_alives` has no effect: the exporter keeps its connections open",
            None,
        );
    }
    fields.unsupported(&["proxy_url", "cookies", "middlewares"]);
}
