//! `health_check`.

use std::{path::PathBuf, time::Duration};

use crate::{
    ConfigText,
    component::{ComponentSettings, ExtensionSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    network::{self, ServerTls, tls},
};

#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    pub endpoint: ConfigText,
    /// `path` of the health answer.
    pub path: String,
    pub tls: Option<ServerTls>,
    pub pipeline_check: PipelineCheck,
    /// `response_body`; `None`: the document that the Collector answers with.
    pub response_body: Option<HealthBodies>,
}

/// `response_body`: the bodies that replace the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthBodies {
    pub healthy: String,
    pub unhealthy: String,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            endpoint: "localhost:13133".into(),
            path: "/".into(),
            tls: None,
            pipeline_check: PipelineCheck::default(),
            response_body: None,
        }
    }
}

/// When a pipeline counts as stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineCheck {
    /// `interval`: it holds data and delivered nothing for this long,
    pub interval: Duration,
    /// `exporter_failure_threshold`: and failed at least this often since.
    pub failure_threshold: u32,
}

impl Default for PipelineCheck {
    fn default() -> Self {
        Self { interval: Duration::from_secs(300), failure_threshold: 5 }
    }
}

impl ComponentSettings for HealthCheck {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let default = HealthCheck::default();
        let mut fields = FieldReader::new(at, report);
        let check = HealthCheck {
            endpoint: network::listen(&mut fields, &default.endpoint),
            path: fields.get_or("path", default.path, scalar::text),
            tls: fields.get("tls", tls::server),
            pipeline_check: fields.get("check_collector_pipeline", pipeline_check).unwrap_or_default(),
            response_body: fields.get("response_body", response_body),
        };
        if !check.path.starts_with('/') {
            report.error(&fields.cursor_at("path"), "`path` must begin with /", None);
        }
        fields.accept_without_effect(
            &["read_timeout", "read_header_timeout", "write_timeout", "idle_timeout"],
            scalar::nanoseconds,
        );
        fields.accept_without_effect(&["include_metadata", "keep_alives_enabled", "use_v2"], scalar::boolean);
        fields.accept_without_effect(&["max_request_body_size"], scalar::integer);
        fields.accept_without_effect(&["compression_algorithms"], scalar::texts);
        fields.unsupported(&["auth", "cors", "response_headers", "middlewares", "http", "grpc", "component_health"]);
        fields.finish();
        Some(check)
    }

    fn encode(&self) -> YamlMap {
        let default = Self::default();
        YamlMap::default()
            .with_changed("endpoint", &self.endpoint, &default.endpoint)
            .with_changed("path", &self.path, &default.path)
            .with_optional("tls", self.tls.as_ref().map(ServerTls::encode))
            .with_section("check_collector_pipeline", self.pipeline_check.encode())
            .with_optional("response_body", self.response_body.as_ref().map(HealthBodies::encode))
    }

    fn files(&self) -> Vec<PathBuf> {
        self.tls.as_ref().map(ServerTls::files).unwrap_or_default()
    }
}

impl ExtensionSettings for HealthCheck {}

fn response_body(at: &Cursor<'_>, report: &DecodeReport) -> Option<HealthBodies> {
    let mut fields = FieldReader::new(at, report);
    let bodies = HealthBodies {
        healthy: fields.text("healthy").unwrap_or_default(),
        unhealthy: fields.text("unhealthy").unwrap_or_default(),
    };
    fields.finish();
    Some(bodies)
}

fn pipeline_check(at: &Cursor<'_>, report: &DecodeReport) -> Option<PipelineCheck> {
    let default = PipelineCheck::default();
    let mut fields = FieldReader::new(at, report);
    if fields.get("enabled", scalar::boolean) == Some(false) {
        let message = "`enabled: false` has no effect: a pipeline that is stuck is always reported";
        report.warning(&fields.cursor_at("enabled"), message, None);
    }
    let check = PipelineCheck {
        interval: fields.get_or("interval", default.interval, scalar::duration),
        failure_threshold: fields.get_or("exporter_failure_threshold", default.failure_threshold, scalar::u32),
    };
    fields.finish();
    Some(check)
}

impl PipelineCheck {
    fn encode(&self) -> YamlMap {
        let default = Self::default();
        YamlMap::default().with_changed("interval", self.interval, default.interval).with_changed(
            "exporter_failure_threshold",
            self.failure_threshold,
            default.failure_threshold,
        )
    }
}

impl HealthBodies {
    fn encode(&self) -> YamlMap {
        YamlMap::default().with_text("healthy", &self.healthy).with_text("unhealthy", &self.unhealthy)
    }
}
