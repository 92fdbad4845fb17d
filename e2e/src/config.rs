//! Builds a collector's configuration from lines of YAML.

use std::{collections::BTreeMap, fmt, net::SocketAddr};

/// A configuration with an `otlp` receiver on free ports, health and metrics. Additions are YAML in flow style.
#[derive(Clone, Debug)]
pub struct ConfigBuilder {
    sections: BTreeMap<&'static str, BTreeMap<String, String>>,
    /// By id: receivers, processors, exporters.
    pipelines: BTreeMap<String, [String; 3]>,
    log_level: &'static str,
}

/// The address comes from the environment that [`CollectorBuilder`](crate::collector::CollectorBuilder) sets.
const HEALTH_SETTINGS: &str = r#"{endpoint: "${env:HEALTH}"}"#;

impl Default for ConfigBuilder {
    fn default() -> Self {
        let config = Self { sections: BTreeMap::new(), pipelines: BTreeMap::new(), log_level: "info" };
        config.receiver("otlp", otlp_at("127.0.0.1:0", "127.0.0.1:0")).extension("health_check", HEALTH_SETTINGS)
    }
}

impl ConfigBuilder {
    /// A configuration that receives OTLP and has no pipelines yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A configuration that sends spans, logs and metrics to one exporter, without batching.
    pub fn exporting_to(exporter: &str, settings: impl ToString) -> Self {
        let all = ["traces", "logs", "metrics"].into_iter();
        all.fold(Self::new().exporter(exporter, settings), |config, signal| config.pipeline(signal, "", exporter))
    }

    /// Adds or replaces a receiver.
    pub fn receiver(self, id: &str, settings: impl ToString) -> Self {
        self.set("receivers", id, settings)
    }

    /// Adds or replaces a processor.
    pub fn processor(self, id: &str, settings: impl ToString) -> Self {
        self.set("processors", id, settings)
    }

    /// Adds or replaces an exporter.
    pub fn exporter(self, id: &str, settings: impl ToString) -> Self {
        self.set("exporters", id, settings)
    }

    /// Adds or replaces an extension, and enables it.
    pub fn extension(self, id: &str, settings: impl ToString) -> Self {
        self.set("extensions", id, settings)
    }

    /// Adds or replaces a pipeline of the `otlp` receiver; ids are separated by commas.
    pub fn pipeline(self, id: &str, processors: &str, exporters: &str) -> Self {
        self.pipeline_of(id, "otlp", processors, exporters)
    }

    /// Adds or replaces a pipeline.
    pub fn pipeline_of(mut self, id: &str, receivers: &str, processors: &str, exporters: &str) -> Self {
        self.pipelines.insert(id.to_owned(), [receivers, processors, exporters].map(str::to_owned));
        self
    }

    pub fn without_pipeline(mut self, id: &str) -> Self {
        self.pipelines.remove(id);
        self
    }

    pub fn debug_logs(mut self) -> Self {
        self.log_level = "debug";
        self
    }

    fn set(mut self, section: &'static str, id: &str, settings: impl ToString) -> Self {
        self.sections.entry(section).or_default().insert(id.to_owned(), settings.to_string());
        self
    }
}

impl fmt::Display for ConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (section, components) in &self.sections {
            writeln!(f, "{section}:")?;
            components.iter().try_for_each(|(id, settings)| writeln!(f, "  {id}: {settings}"))?;
        }
        let extensions: Vec<_> = self.sections["extensions"].keys().cloned().collect();
        writeln!(f, "service:\n  extensions: [{}]\n  telemetry:", extensions.join(", "))?;
        writeln!(f, "    logs: {{level: {}}}", self.log_level)?;
        let reader = r#"{pull: {exporter: {prometheus: {host: 127.0.0.1, port: "${env:METRICS_PORT}"}}}}"#;
        writeln!(f, "    metrics: {{readers: [{reader}]}}\n  pipelines:")?;
        self.pipelines.iter().try_for_each(|(id, [receivers, processors, exporters])| {
            writeln!(f, "    {id}: {{receivers: [{receivers}], processors: [{processors}], exporters: [{exporters}]}}")
        })
    }
}

/// Settings of an `otlp` receiver.
pub fn otlp_at(grpc: impl fmt::Display, http: impl fmt::Display) -> String {
    format!(r#"{{protocols: {{grpc: {{endpoint: "{grpc}"}}, http: {{endpoint: "{http}"}}}}}}"#)
}

/// Settings in braces, which can be extended.
#[derive(Clone, Debug)]
pub struct FlowSettings(String);

impl FlowSettings {
    /// Adds `key: value`.
    pub fn with_setting(self, more: impl fmt::Display) -> Self {
        Self(format!("{}, {more}", self.0))
    }
}

impl fmt::Display for FlowSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.0)
    }
}

/// Short intervals for backends that come back, and a long timeout so that no attempt fails on a busy machine.
const RETRY_SETTINGS: &str = "timeout: 60s, retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}";

/// An `otlp` exporter to this address, in plain text and with short retry intervals.
pub fn grpc_to(address: SocketAddr) -> FlowSettings {
    FlowSettings(format!(r#"endpoint: "{address}", tls: {{insecure: true}}, {RETRY_SETTINGS}"#))
}

/// An `otlphttp` exporter to this address, in plain text and with short retry intervals.
pub fn http_to(address: SocketAddr) -> FlowSettings {
    FlowSettings(format!(r#"endpoint: "http://{address}", {RETRY_SETTINGS}"#))
}
