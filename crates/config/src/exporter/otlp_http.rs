//! `otlphttp`, `otlp_http`.

use std::{path::PathBuf, time::Duration};

use kubewake_otlp::Signal;

use crate::{
    ComponentId, ConfigText, SecretString,
    component::{ComponentSettings, ExporterSettings, PipelinePlace, PlaceProblem},
    decode::{ConnectionSide, Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
    network::{self, ClientTls, CompressionType, tls},
    sending::{self, QueueConfig, RetryConfig},
};

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BodyEncoding {
    #[default]
    Proto,
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OtlpHttpExporter {
    /// The whole URL for traces; `None` if neither `endpoint` nor `traces_endpoint` is set.
    pub traces_url: Option<ConfigText>,
    /// The whole URL for metrics.
    pub metrics_url: Option<ConfigText>,
    /// The whole URL for logs.
    pub logs_url: Option<ConfigText>,
    pub encoding: BodyEncoding,
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

impl Default for OtlpHttpExporter {
    fn default() -> Self {
        Self {
            traces_url: None,
            metrics_url: None,
            logs_url: None,
            encoding: BodyEncoding::Proto,
            tls: ClientTls::default(),
            compression: CompressionType::Gzip,
            headers: Vec::new(),
            auth: None,
            timeout: Some(DEFAULT_TIMEOUT),
            retry: Some(RetryConfig::default()),
            queue: Some(QueueConfig::default()),
        }
    }
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const ENCODINGS: [(&str, BodyEncoding); 2] = [("proto", BodyEncoding::Proto), ("json", BodyEncoding::Json)];

impl ComponentSettings for OtlpHttpExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let urls = SignalUrls::read(&mut fields);
        skip_ineffective_fields(&mut fields);
        let exporter = OtlpHttpExporter {
            traces_url: urls.traces.map(Into::into),
            metrics_url: urls.metrics.map(Into::into),
            logs_url: urls.logs.map(Into::into),
            encoding: fields
                .get_or("encoding", BodyEncoding::Proto, |at, report| scalar::keyword(at, report, &ENCODINGS)),
            tls: fields.get("tls", tls::client).unwrap_or_default(),
            compression: fields.get_or("compression", CompressionType::Gzip, network::compression),
            headers: fields.get("headers", network::headers).unwrap_or_default(),
            auth: network::auth(&mut fields, ConnectionSide::Client),
            timeout: sending::timeout(&mut fields, DEFAULT_TIMEOUT),
            retry: sending::retry(&mut fields),
            queue: sending::queue(&mut fields),
        };
        fields.finish();
        Some(exporter)
    }

    fn encode(&self) -> YamlMap {
        let map = YamlMap::default()
            .with_optional("traces_endpoint", self.traces_url.as_ref())
            .with_optional("metrics_endpoint", self.metrics_url.as_ref())
            .with_optional("logs_endpoint", self.logs_url.as_ref())
            .with_changed("encoding", encode::keyword(&ENCODINGS, &self.encoding), "proto")
            .with_section("tls", self.tls.encode())
            .with_changed("compression", self.compression.name(), CompressionType::Gzip.name())
            .with_list("headers", network::encode_headers(&self.headers))
            .with_optional("auth", self.auth.as_ref().map(network::encode_auth));
        sending::encode(map, self.timeout, DEFAULT_TIMEOUT, self.retry.as_ref(), self.queue.as_ref())
    }

    fn files(&self) -> Vec<PathBuf> {
        self.tls.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.auth.iter().collect()
    }
}

impl ExporterSettings for OtlpHttpExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    /// Refuses an exporter that has endpoints for other signals only.
    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        let PipelinePlace { signal, id, .. } = place;
        // An exporter without any endpoint was reported at its definition.
        let has_urls = [&self.traces_url, &self.metrics_url, &self.logs_url].into_iter().any(Option::is_some);
        if !has_urls || self.url(*signal).is_some() {
            return Vec::new();
        }
        vec![PlaceProblem::error(
            format!("the exporter `{id}` has no endpoint for {signal}"),
            format!("set its `endpoint` or `{signal}_endpoint`"),
        )]
    }
}

impl OtlpHttpExporter {
    /// The whole URL for a signal.
    pub fn url(&self, signal: Signal) -> Option<&str> {
        match signal {
            Signal::Traces => self.traces_url.as_deref(),
            Signal::Metrics => self.metrics_url.as_deref(),
            Signal::Logs => self.logs_url.as_deref(),
        }
    }
}

struct SignalUrls {
    traces: Option<String>,
    metrics: Option<String>,
    logs: Option<String>,
}

const ENDPOINT_FIELDS: [&str; 5] =
    ["endpoint", "traces_endpoint", "metrics_endpoint", "logs_endpoint", "profiles_endpoint"];

impl SignalUrls {
    fn read(fields: &mut FieldReader<'_, '_>) -> Self {
        let base = fields.get("endpoint", url);
        let mut of = |signal: Signal, name| match fields.get(name, url) {
            Some(url) => Some(url),
            None => base.as_deref().map(|base| join(base, signal)),
        };
        let urls = Self {
            traces: of(Signal::Traces, "traces_endpoint"),
            metrics: of(Signal::Metrics, "metrics_endpoint"),
            logs: of(Signal::Logs, "logs_endpoint"),
        };
        fields.warn_ineffective("profiles_endpoint", "profiles are not supported by this build", url);
        let given = |name: &&str| fields.has(name) && !is_empty(&fields.cursor_at(name));
        if !ENDPOINT_FIELDS.iter().any(given) {
            let help = "set `endpoint`, such as https://backend.example.com:4318, or one endpoint for each signal";
            fields.require("endpoint", "the exporter needs at least one endpoint", Some(help.into()));
        }
        urls
    }
}

fn is_empty(at: &Cursor<'_>) -> bool {
    scalar::text(at, &DecodeReport::default()).is_some_and(|text| text.is_empty())
}

/// The URL of a signal, joined as the Collector does.
fn join(base: &str, signal: Signal) -> String {
    format!("{}/v1/{signal}", base.strip_suffix('/').unwrap_or(base))
}

/// A URL for requests; an empty one counts as missing.
fn url(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let text = scalar::text(at, report)?;
    if text.is_empty() {
        return None;
    }
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let reason = match rest {
        None => "does not begin with http:// or https://",
        Some(_) if text.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            "has spaces or control characters in it"
        }
        Some(rest) => match authority_fault(rest) {
            Some(reason) => reason,
            None => return Some(text),
        },
    };
    let help = match rest {
        None if at.node.origin.is_none() && !text.contains("://") => {
            format!("write http://{0} or https://{0}", crate::problem::crop(&text))
        }
        _ => "write a complete URL, such as https://backend.example.com:4318".to_owned(),
    };
    report.error(at, format!("`{}` must be a URL: {} {reason}", at.name(), at.subject(&text)), Some(help));
    None
}

fn authority_fault(rest: &str) -> Option<&'static str> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((name, after)) => (name, after.strip_prefix(':')),
            None => return Some("has a bracket that is not closed"),
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if name.is_empty() {
        return Some("has no host");
    }
    match port {
        None | Some("") => None,
        Some(port) if port.parse::<u16>().is_ok() => None,
        Some(_) => Some("has an invalid port"),
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
    network::compression_params(fields);
    fields.unsupported(&["proxy_url", "cookies", "middlewares"]);
}
