//! Renders exporters of logs to backends that do not receive OTLP.

use kubewake_config::{
    ConfigText,
    model::{CompressionType, ExporterConfig, HttpExportConfig, LokiExporter, NameTemplate},
};

/// An exporter to Loki.
pub(super) fn loki(
    endpoint: ConfigText,
    tenant: Option<&str>,
    labels: &[(String, String)],
    allowed: &[String],
    http: HttpExportConfig,
) -> ExporterConfig {
    let default = LokiExporter::new(endpoint);
    let tenant = tenant.and_then(template);
    let given: Vec<(String, NameTemplate)> =
        labels.iter().filter_map(|(name, text)| Some((name.clone(), template(text)?))).collect();
    let labels = if given.is_empty() { default.labels.clone() } else { given };
    let used = tenant.iter().chain(labels.iter().map(|(_, value)| value));
    ExporterConfig::Loki(
        LokiExporter {
            allow_record_attributes: used_attributes(allowed, used),
            tenant,
            labels,
            http: HttpExportConfig { compression: CompressionType::None, ..http },
            ..default
        }
        .into(),
    )
}

/// A template. Validation has refused those that are none.
fn template(text: &str) -> Option<NameTemplate> {
    NameTemplate::parse(text).ok()
}

/// The allowed attributes that templates take. The collector warns of others.
fn used_attributes<'t>(allowed: &[String], templates: impl Iterator<Item = &'t NameTemplate>) -> Vec<String> {
    let used: Vec<&str> = templates.flat_map(NameTemplate::attribute_keys).collect();
    allowed.iter().filter(|key| used.contains(&key.as_str())).cloned().collect()
}
