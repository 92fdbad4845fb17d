//! `otlp`, `otlp_grpc`.

use std::{path::PathBuf, time::Duration};

use kubewake_otlp::Signal;

use crate::{
    ComponentId, ConfigText, SecretString,
    component::{ComponentSettings, ExporterSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    network::{self, ClientKeepalive, ClientTls, CompressionType, tls},
    sending::{self, QueueConfig, RetryConfig},
};

#[derive(Clone, Debug, PartialEq)]
pub struct OtlpGrpcExporter {
    /// `endpoint` without its scheme: `host:port`.
    pub endpoint: ConfigText,
    /// `tls`; a scheme of `http` sets `insecure`, one of `https` clears it.
    pub tls: ClientTls,
    pub compression: CompressionType,
    pub headers: Vec<(String, SecretString)>,
    pub authority: Option<String>,
    pub auth: Option<ComponentId>,
    pub keepalive: Option<ClientKeepalive>,
    /// `timeout` of one attempt; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`; `None` when it is switched off.
    pub retry: Option<RetryConfig>,
    /// `sending_queue`; `None` when it is switched off.
    pub queue: Option<QueueConfig>,
}

impl ComponentSettings for OtlpGrpcExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let target = fields.get("endpoint", target);
        if target.is_none() {
            fields.require("endpoint", "the exporter needs an `endpoint`", Some(ENDPOINT_HELP.into()));
        }
        let target = target.unwrap_or_default();
        let mut tls = fields.get("tls", tls::client).unwrap_or_default();
        match target.scheme {
            Some(EndpointScheme::Http) => {
                if !tls.insecure {
                    let help = "set `tls: {insecure: true}`, too: without it the OpenTelemetry Collector uses TLS";
                    report.warning(&fields.cursor_at("endpoint"), "`http://` disables TLS", Some(help.into()));
                }
                tls.insecure = true;
            }
            Some(EndpointScheme::Https) => tls.insecure = false,
            None => {}
        }
        let exporter = client(&mut fields, target.address, tls);
        fields.finish();
        Some(exporter)
    }

    fn encode(&self) -> YamlMap {
        self.encode_client(YamlMap::default().with_field("endpoint", &self.endpoint))
    }

    fn files(&self) -> Vec<PathBuf> {
        self.tls.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.auth.iter().collect()
    }
}

impl ExporterSettings for OtlpGrpcExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}

impl Default for OtlpGrpcExporter {
    fn default() -> Self {
        Self {
            endpoint: ConfigText::default(),
            tls: ClientTls::default(),
            compression: CompressionType::Gzip,
            headers: Vec::new(),
            authority: None,
            auth: None,
            keepalive: None,
            timeout: Some(DEFAULT_TIMEOUT),
            retry: Some(RetryConfig::default()),
            queue: Some(QueueConfig::default()),
        }
    }
}

impl OtlpGrpcExporter {
    /// Adds all fields but the endpoint.
    pub(super) fn encode_client(&self, map: YamlMap) -> YamlMap {
        let map = map
            .with_section("tls", self.tls.encode())
            .with_changed("compression", self.compression.name(), CompressionType::Gzip.name())
            .with_list("headers", network::encode_headers(&self.headers))
            .with_optional("authority", self.authority.as_deref())
            .with_optional("auth", self.auth.as_ref().map(network::encode_auth))
            .with_optional("keepalive", self.keepalive.as_ref().map(ClientKeepalive::encode));
        sending::encode(map, self.timeout, DEFAULT_TIMEOUT, self.retry.as_ref(), self.queue.as_ref())
    }
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a client whose endpoint comes from elsewhere.
pub(super) fn template(at: &Cursor<'_>, report: &DecodeReport) -> Option<OtlpGrpcExporter> {
    let mut fields = FieldReader::new(at, report);
    fields.warn_ineffective("endpoint", "the resolver provides the addresses of the peers", scalar::text);
    let tls = fields.get("tls", tls::client).unwrap_or_default();
    let exporter = client(&mut fields, String::new(), tls);
    fields.finish();
    Some(exporter)
}

fn client(fields: &mut FieldReader<'_, '_>, endpoint: String, tls: ClientTls) -> OtlpGrpcExporter {
    skip_ineffective_fields(fields);
    OtlpGrpcExporter {
        endpoint: endpoint.into(),
        tls,
        compression: fields.get_or("compression", CompressionType::Gzip, network::grpc_compression),
        headers: fields.get("headers", network::headers).unwrap_or_default(),
        authority: fields.text("authority"),
        auth: network::auth(fields, ConnectionSide::Client),
        keepalive: fields.get("keepalive", network::client_keepalive),
        timeout: sending::timeout(fields, DEFAULT_TIMEOUT),
        retry: sending::retry(fields),
        queue: sending::queue(fields),
    }
}

const ENDPOINT_HELP: &str = "write it as host:port, such as backend.example.com:4317";

fn skip_ineffective_fields(fields: &mut FieldReader<'_, '_>) {
    fields.accept_without_effect(&["read_buffer_size", "write_buffer_size"], scalar::integer);
    fields.accept_without_effect(&["wait_for_ready"], scalar::boolean);
    let balancers = [("round_robin", ()), ("pick_first", ()), ("", ())];
    fields.get("balancer_name", |at, report| scalar::keyword(at, report, &balancers));
    fields.unsupported(&["middlewares", "user_agent"]);
}

/// The parts of an endpoint: an address, and whether the scheme requires TLS.
#[derive(Default)]
struct EndpointTarget {
    address: String,
    scheme: Option<EndpointScheme>,
}

#[derive(Clone, Copy)]
enum EndpointScheme {
    Http,
    Https,
}

fn target(at: &Cursor<'_>, report: &DecodeReport) -> Option<EndpointTarget> {
    let text = scalar::text(at, report)?;
    let (scheme, address) = strip_scheme(at, report, &text)?;
    if address.is_empty() {
        let message = match at.node.origin {
            None => "the `endpoint` is empty".to_owned(),
            Some(_) => format!("`endpoint`: {} is empty", at.subject(address)),
        };
        report.error(at, message, Some(ENDPOINT_HELP.into()));
        return None;
    }
    match network::check_host_port(address) {
        Ok(()) => Some(EndpointTarget { address: address.to_owned(), scheme }),
        Err(what) => {
            report.error(at, format!("`endpoint`: {}", what.describe(at, address)), Some(ENDPOINT_HELP.into()));
            None
        }
    }
}

/// Splits off the scheme. gRPC's resolvers `dns` and `passthrough` change nothing here.
fn strip_scheme<'t>(
    at: &Cursor<'_>,
    report: &DecodeReport,
    text: &'t str,
) -> Option<(Option<EndpointScheme>, &'t str)> {
    if let Some(address) = text.strip_prefix("http://") {
        return Some((Some(EndpointScheme::Http), address));
    }
    if let Some(address) = text.strip_prefix("https://") {
        return Some((Some(EndpointScheme::Https), address));
    }
    if text.starts_with("unix:") || text.starts_with("unix-abstract:") {
        report.error(at, "Unix sockets are not supported by this build", Some(ENDPOINT_HELP.into()));
        return None;
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Some((None, text));
    };
    if !matches!(scheme, "dns" | "passthrough") {
        let message = format!("`endpoint`: the scheme of {} is not supported by this build", at.subject(text));
        report.error(at, message, Some("the known schemes are: dns, http, https, passthrough".into()));
        return None;
    }
    // `dns://authority/host:port`; without an authority there are three slashes. The Collector also takes two.
    Some((None, rest.split_once('/').map_or(rest, |(_, address)| address)))
}
