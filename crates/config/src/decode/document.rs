//! Decodes the whole document.

use std::collections::BTreeMap;

use super::{
    component::{self, DecodedSection},
    cursor::Cursor,
    field_reader::FieldReader,
    pipeline,
    pipeline::{ComponentReference, DecodedPipeline},
    references::{self, DocumentSections},
    report::DecodeReport,
};
use crate::{
    CollectorDocument, ComponentId, PipelineId,
    component::ComponentKind,
    service::{self, PipelineConfig, ServiceConfig, TelemetryConfig},
    yaml::{NodeValue, YamlNode},
};

/// Decodes a document, which is valid only if no error was reported.
pub(crate) fn document(root: &YamlNode, report: &DecodeReport) -> CollectorDocument {
    let at = Cursor::root(root);
    if !matches!(root.value, NodeValue::Map(_) | NodeValue::Null | NodeValue::Bad) {
        let help = "a configuration is a map with `receivers`, `exporters` and `service`";
        report.error(&at, format!("the document must be a map, not {}", root.kind()), Some(help.into()));
        return CollectorDocument::default();
    }
    let mut fields = FieldReader::new(&at, report);
    let receivers = read(&mut fields);
    let processors = read(&mut fields);
    let exporters = read(&mut fields);
    let extensions = read(&mut fields);
    let connectors = read(&mut fields);
    let service = fields.find("service").map(|at| read_service(&at, report)).unwrap_or_default();
    check_sections_present(&fields, receivers.declared.is_empty(), exporters.declared.is_empty());
    if !service.has_pipelines {
        let help = "add a pipeline: `traces: {receivers: […], exporters: […]}`";
        let place = if fields.has("service") { fields.cursor_at("service") } else { at.absent("service") };
        report.missing(&place, "pipelines", "the service must have at least one pipeline", Some(help.into()));
    }
    fields.finish();
    references::check(
        &DocumentSections {
            receivers: &receivers,
            processors: &processors,
            exporters: &exporters,
            connectors: &connectors,
            extensions: &extensions,
            pipelines: &service.pipelines,
            running: &service.extensions,
        },
        report,
    );
    CollectorDocument {
        receivers: receivers.components,
        processors: processors.components,
        exporters: exporters.components,
        connectors: connectors.components,
        extensions: extensions.components,
        service: service.finish(),
    }
}

fn read<T: ComponentKind>(fields: &mut FieldReader<'_, '_>) -> DecodedSection<T> {
    match fields.find(T::SECTION) {
        Some(at) => component::section(&at, fields.report),
        None => DecodedSection::empty(),
    }
}

/// A collector without receivers or exporters has nothing to do.
fn check_sections_present(fields: &FieldReader<'_, '_>, no_receivers: bool, no_exporters: bool) {
    let sections = ["receivers", "processors", "exporters", "extensions", "connectors"];
    if !sections.into_iter().any(|section| fields.has(section)) {
        let help = "a configuration has `receivers`, `exporters` and `service`";
        return fields.require("receivers", "the configuration is empty", Some(help.into()));
    }
    for (section, noun, empty) in [("receivers", "receiver", no_receivers), ("exporters", "exporter", no_exporters)] {
        // A section that is not a map was reported already.
        let readable = match fields.cursor_at(section).node.value {
            NodeValue::Map(_) | NodeValue::Null => true,
            _ => !fields.has(section),
        };
        if empty && readable {
            fields.require(section, &format!("no {noun} is configured"), None);
        }
    }
}

/// The `service` section before references are checked.
#[derive(Default)]
struct DecodedService {
    extensions: Vec<ComponentReference>,
    pipelines: BTreeMap<PipelineId, DecodedPipeline>,
    /// Whether there are any, even if they could not be read.
    has_pipelines: bool,
    telemetry: TelemetryConfig,
}

fn read_service(at: &Cursor<'_>, report: &DecodeReport) -> DecodedService {
    let mut fields = FieldReader::new(at, report);
    let extensions = pipeline::dedup_references(fields.get("extensions", pipeline::references).unwrap_or_default());
    let mut written = DecodedService { extensions, ..DecodedService::default() };
    if let Some(at) = fields.find("pipelines") {
        written.has_pipelines = !matches!(&at.node.value, NodeValue::Map(entries) if entries.is_empty());
        written.pipelines = pipeline::pipelines(&at, report);
    }
    written.has_pipelines |= matches!(at.node.value, NodeValue::Bad) || fields.failed("pipelines");
    written.telemetry = fields.get("telemetry", service::telemetry).unwrap_or_default();
    fields.finish();
    written
}

impl DecodedService {
    fn finish(self) -> ServiceConfig {
        let ids = |references: Vec<ComponentReference>| -> Vec<ComponentId> {
            references.into_iter().map(|reference| reference.id).collect()
        };
        let pipeline = |wiring: DecodedPipeline| PipelineConfig {
            receivers: ids(wiring.receivers),
            processors: ids(wiring.processors),
            exporters: ids(wiring.exporters),
            uid: wiring.uid,
            carries: wiring.carries,
        };
        ServiceConfig {
            extensions: ids(self.extensions),
            pipelines: self.pipelines.into_iter().map(|(id, wiring)| (id, pipeline(wiring))).collect(),
            telemetry: self.telemetry,
        }
    }
}
