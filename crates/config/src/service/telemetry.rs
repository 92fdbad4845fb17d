//! `service::telemetry`: the collector's own logs and metrics.

use std::collections::BTreeMap;

use super::{LogEncoding, LogLevel, LogsConfig, MetricsConfig, MetricsLevel, TelemetryConfig};
use crate::{
    ConfigText, TextReference,
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap, YamlValue},
    network,
    yaml::NodeValue,
};

pub(crate) fn telemetry(at: &Cursor<'_>, report: &DecodeReport) -> Option<TelemetryConfig> {
    let mut fields = FieldReader::new(at, report);
    let telemetry = TelemetryConfig {
        logs: fields.get("logs", logs).unwrap_or_default(),
        metrics: fields.get("metrics", metrics).unwrap_or_default(),
        resource: fields.get("resource", resource).unwrap_or_default(),
    };
    if let Some(at) = fields.find("traces") {
        traces(&at, report);
    }
    fields.finish();
    Some(telemetry)
}

const LEVELS: [(&str, MetricsLevel); 4] = [
    ("none", MetricsLevel::None),
    ("basic", MetricsLevel::Basic),
    ("normal", MetricsLevel::Normal),
    ("detailed", MetricsLevel::Detailed),
];

/// Accepts any value where none is used.
fn anything(at: &Cursor<'_>, _: &DecodeReport) -> Option<()> {
    (!matches!(at.node.value, NodeValue::Bad)).then_some(())
}

fn traces(at: &Cursor<'_>, report: &DecodeReport) {
    let mut fields = FieldReader::new(at, report);
    fields.accept_without_effect(&["level"], |at, report| scalar::keyword_any_case(at, report, &LEVELS));
    fields.accept_without_effect(&["propagators"], scalar::texts);
    fields.warn_ineffective("processors", "the collector sends no traces of its own", anything);
    fields.accept_without_effect(&["sampler", "limits", "tracer_configurator_development"], anything);
    fields.finish();
}

fn logs(at: &Cursor<'_>, report: &DecodeReport) -> Option<LogsConfig> {
    let mut fields = FieldReader::new(at, report);
    let logs = LogsConfig {
        level: fields.get_or("level", LogLevel::Info, log_level),
        encoding: fields.get_or("encoding", LogEncoding::Console, |at, report| scalar::keyword(at, report, &ENCODINGS)),
    };
    fields.accept_without_effect(
        &["development", "disable_caller", "disable_stacktrace", "disable_zap_resource"],
        scalar::boolean,
    );
    fields.accept_without_effect(&["error_output_paths"], scalar::texts);
    if let Some(paths) = fields.get("output_paths", scalar::texts)
        && paths != ["stderr"]
    {
        report.warning(
            &fields.cursor_at("output_paths"),
            "`output_paths` has no effect: logs go to standard error",
            None,
        );
    }
    fields.warn_ineffective("initial_fields", "log lines have fixed fields", anything);
    fields.warn_ineffective("processors", "the collector's logs go to standard error only", anything);
    if let Some(at) = fields.find("sampling") {
        let mut sampling = FieldReader::new(&at, report);
        sampling.accept_without_effect(&["enabled"], scalar::boolean);
        sampling.accept_without_effect(&["tick"], scalar::nanoseconds);
        sampling.accept_without_effect(&["initial", "thereafter"], scalar::integer);
        sampling.finish();
    }
    fields.finish();
    Some(logs)
}

const ENCODINGS: [(&str, LogEncoding); 2] = [("console", LogEncoding::Console), ("json", LogEncoding::Json)];

const LOG_LEVELS: [(&str, LogLevel); 9] = [
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("", LogLevel::Info),
    ("warn", LogLevel::Warn),
    ("warning", LogLevel::Warn),
    ("error", LogLevel::Error),
    // Levels above error, which this program never logs.
    ("dpanic", LogLevel::Error),
    ("panic", LogLevel::Error),
    ("fatal", LogLevel::Error),
];

fn log_level(at: &Cursor<'_>, report: &DecodeReport) -> Option<LogLevel> {
    scalar::keyword_any_case(at, report, &LOG_LEVELS)
}

fn metrics(at: &Cursor<'_>, report: &DecodeReport) -> Option<MetricsConfig> {
    let default = MetricsConfig::default();
    let mut fields = FieldReader::new(at, report);
    let level = fields.get_or("level", default.level, |at, report| scalar::keyword_any_case(at, report, &LEVELS));
    // The field of older versions.
    let address = fields.get("address", |at, report| network::listen_address(at, report, "address"));
    let readers = fields.get("readers", |at, report| readers(at, report, level));
    if address.is_some() && readers.is_some() {
        report.warning(&fields.cursor_at("address"), "`address` has no effect beside `readers`", None);
    }
    if fields.has("views") && level != MetricsLevel::Detailed {
        report.error(&fields.cursor_at("views"), "`views` can be set only when `level` is detailed", None);
    }
    fields.warn_ineffective("views", "views cannot change the collector's metrics", anything);
    fields.finish();
    let endpoint =
        readers.map(|found| found.map(ConfigText::from)).unwrap_or(address.map(Into::into).or(default.endpoint));
    Some(MetricsConfig { level, endpoint: endpoint.filter(|_| level != MetricsLevel::None) })
}

/// The endpoint of the first pull reader, if there is one.
fn readers(at: &Cursor<'_>, report: &DecodeReport, level: MetricsLevel) -> Option<Option<String>> {
    let Some(items) = at.items() else {
        return scalar::wrong_type(at, report, "a list", None);
    };
    let items: Vec<Cursor<'_>> = items.collect();
    if items.is_empty() && level != MetricsLevel::None {
        let help = "remove `readers` for the default, or set `level: none`";
        report.error(at, "`readers` must not be empty unless `level` is none", Some(help.into()));
    }
    let mut endpoint = None;
    for item in items {
        let found = reader(&item, report);
        if endpoint.is_some() && found.is_some() {
            report.warning(&item, "only the first pull reader has an effect", None);
        }
        endpoint = endpoint.or(found);
    }
    Some(endpoint)
}

fn reader(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let mut fields = FieldReader::new(at, report);
    let endpoint = fields.get("pull", pull);
    if let Some(at) = fields.find("periodic")
        && anything(&at, report).is_some()
    {
        let help = "scrape the metrics with a pull reader instead".to_owned();
        report.warning(&at, "a periodic reader has no effect: the collector does not send its own metrics", help);
    }
    fields.finish();
    endpoint
}

fn pull(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let mut fields = FieldReader::new(at, report);
    let endpoint = fields.get("exporter", |at, report| {
        let mut exporter = FieldReader::new(at, report);
        let endpoint = exporter.find_even_empty("prometheus").and_then(|at| prometheus(&at, report));
        exporter.finish();
        endpoint
    });
    fields.warn_ineffective("producers", "the collector has no other producers of metrics", anything);
    fields.warn_ineffective("cardinality_limits", "the collector's metrics have a low cardinality", anything);
    fields.finish();
    endpoint
}

fn prometheus(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let mut fields = FieldReader::new(at, report);
    let host = fields.text("host");
    let port = fields.get("port", |at, report| scalar::integer_in_range(at, report, 0, u16::MAX.into()));
    if host.is_none() {
        fields.require("host", "`host` must be set", Some("such as `host: 0.0.0.0`".into()));
    }
    if port.is_none() {
        fields.require("port", "`port` must be set", Some("such as `port: 8888`".into()));
    }
    let flags = ["without_scope_info", "without_type_suffix", "without_units", "without_target_info"];
    fields.accept_without_effect(&flags, scalar::boolean);
    fields.warn_ineffective("with_resource_constant_labels", "the labels of metrics are fixed", anything);
    fields.warn_ineffective("translation_strategy", "the names of metrics are fixed", anything);
    fields.finish();
    let host = host.unwrap_or_default();
    let port = port?;
    Some(if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    })
}

/// Attributes of the collector itself: inline as in older versions, or as a list under `attributes`.
fn resource(at: &Cursor<'_>, report: &DecodeReport) -> Option<BTreeMap<String, String>> {
    let NodeValue::Map(entries) = &at.node.value else {
        return scalar::wrong_type(at, report, "a map", None);
    };
    report.mark_keys_public(entries);
    let mut attributes = BTreeMap::new();
    for entry in entries {
        let value = at.entry(entry);
        match entry.key.text.as_str() {
            "attributes" => attributes.extend(attribute_list(&value, report)),
            "schema_url" => _ = scalar::text(&value, report),
            "attributes_list" | "detectors" | "detection/development" => {
                let message = format!("`{}` is not supported by this build", entry.key.text);
                report.error(&value, message, Some("use `attributes`".into()));
            }
            _ if value.node.is_absent() => {
                report.warning(&value, "an attribute without a value has no effect", None);
            }
            key => _ = scalar::text(&value, report).map(|text| attributes.insert(key.to_owned(), text)),
        }
    }
    Some(attributes)
}

fn attribute_list(at: &Cursor<'_>, report: &DecodeReport) -> Vec<(String, String)> {
    let Some(items) = at.items() else {
        scalar::wrong_type::<()>(at, report, "a list of `{name, value}`", None);
        return Vec::new();
    };
    let read = |item: Cursor<'_>| {
        let mut fields = FieldReader::new(&item, report);
        let name = fields.text("name");
        let value = fields.get("value", attribute_value);
        fields.accept_without_effect(&["type"], scalar::text);
        if name.is_none() {
            fields.require("name", "an attribute needs a name", None);
        }
        fields.finish();
        Some((name?, value?))
    };
    items.filter_map(read).collect()
}

fn attribute_value(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    match (&at.node.value, &at.node.origin) {
        (NodeValue::Bool(value), None) => Some(value.to_string()),
        (NodeValue::Int(value), None) => Some(value.to_string()),
        (NodeValue::Float(value), None) => Some(value.to_string()),
        _ => scalar::text(at, report),
    }
}

impl TelemetryConfig {
    pub(crate) fn encode(&self) -> YamlMap {
        let attribute =
            |(name, value): (&String, &String)| YamlMap::default().with_field("name", name).with_field("value", value);
        let resource = YamlMap::default().with_list("attributes", self.resource.iter().map(attribute));
        YamlMap::default()
            .with_section("logs", self.logs.encode())
            .with_section("metrics", self.metrics.encode())
            .with_section("resource", resource)
    }
}

impl LogsConfig {
    fn encode(&self) -> YamlMap {
        YamlMap::default().with_changed("level", encode::keyword(&LOG_LEVELS, &self.level), "info").with_changed(
            "encoding",
            encode::keyword(&ENCODINGS, &self.encoding),
            "console",
        )
    }
}

impl MetricsConfig {
    fn encode(&self) -> YamlMap {
        let map = YamlMap::default().with_changed("level", encode::keyword(&LEVELS, &self.level), "normal");
        match &self.endpoint {
            None if self.level == MetricsLevel::None => map,
            // A reader of no kind.
            None => map.with_list("readers", [YamlMap::default()]),
            endpoint if *endpoint == Self::default().endpoint => map,
            Some(endpoint) => match host_and_port(endpoint) {
                Some((host, port)) => map.with_list("readers", [pull_reader(host, port)]),
                None => map.with_field("address", endpoint),
            },
        }
    }
}

fn pull_reader(host: YamlValue, port: u16) -> YamlMap {
    let prometheus = YamlMap::default().with_field("host", host).with_field("port", port);
    let exporter = YamlMap::default().with_field("prometheus", prometheus);
    YamlMap::default().with_field("pull", YamlMap::default().with_field("exporter", exporter))
}

/// An address in its parts, as a reader has them; `None` if it has no host, or is a reference as a whole.
fn host_and_port(endpoint: &ConfigText) -> Option<(YamlValue, u16)> {
    match endpoint.reference() {
        None => {
            let (host, port) = endpoint.rsplit_once(':')?;
            Some((host.into(), port.parse().ok()?)).filter(|_| !host.is_empty())
        }
        Some(TextReference::Env { name, rest }) => {
            let host = TextReference::Env { name, rest: String::new() };
            Some(((&host).into(), rest.strip_prefix(':')?.parse().ok()?))
        }
        Some(TextReference::File(_)) => None,
    }
}
