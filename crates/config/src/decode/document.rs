//! The whole document.

use std::collections::BTreeMap;

use super::{
    component::{self, EXPORTERS, EXTENSIONS, Kind, PROCESSORS, RECEIVERS, Section},
    cursor::Cursor,
    fields::Fields,
    pipeline,
    pipeline::{Reference, Wiring},
    references::{self, Parts},
    report::Report,
    telemetry,
};
use crate::{
    ComponentId, Document, PipelineId,
    model::{Pipeline, Service, Telemetry},
    yaml::{Node, Value},
};

/// Reads a document. It is valid only if nothing was reported as an error.
pub(crate) fn document(root: &Node, report: &Report) -> Document {
    let at = Cursor::root(root);
    if !matches!(root.value, Value::Map(_) | Value::Null | Value::Bad) {
        let help = "a configuration is a map with `receivers`, `exporters` and `service`";
        report.error(&at, format!("the document must be a map, not {}", root.kind()), Some(help.into()));
        return Document::default();
    }
    let mut fields = Fields::of(&at, report);
    let receivers = read(&mut fields, &RECEIVERS);
    let processors = read(&mut fields, &PROCESSORS);
    let exporters = read(&mut fields, &EXPORTERS);
    let extensions = read(&mut fields, &EXTENSIONS);
    fields.unsupported(&["connectors"]);
    let service = fields.find("service").map(|at| service(&at, report)).unwrap_or_default();
    complete(&fields, receivers.declared.is_empty(), exporters.declared.is_empty());
    if !service.has_pipelines {
        let help = "add a pipeline: `traces: {receivers: […], exporters: […]}`";
        let place = if fields.has("service") { fields.place("service") } else { at.absent("service") };
        report.missing(&place, "pipelines", "the service must have at least one pipeline", Some(help.into()));
    }
    fields.finish();
    references::check(
        &Parts {
            receivers: &receivers,
            processors: &processors,
            exporters: &exporters,
            extensions: &extensions,
            pipelines: &service.pipelines,
            running: &service.extensions,
        },
        report,
    );
    Document {
        receivers: receivers.components,
        processors: processors.components,
        exporters: exporters.components,
        extensions: extensions.components,
        service: service.finish(),
    }
}

fn read<T>(fields: &mut Fields<'_, '_>, kind: &Kind<T>) -> Section<T> {
    match fields.find(kind.section) {
        Some(at) => component::section(&at, fields.report, kind),
        None => Section::empty(),
    }
}

/// A collector without receivers or exporters has nothing to do.
fn complete(fields: &Fields<'_, '_>, no_receivers: bool, no_exporters: bool) {
    let sections = ["receivers", "processors", "exporters", "extensions", "connectors"];
    if !sections.into_iter().any(|section| fields.has(section)) {
        let help = "a configuration has `receivers`, `exporters` and `service`";
        return fields.require("receivers", "the configuration is empty", Some(help.into()));
    }
    for (section, noun, empty) in [("receivers", "receiver", no_receivers), ("exporters", "exporter", no_exporters)] {
        // One that is not a map was reported already.
        let readable = match fields.place(section).node.value {
            Value::Map(_) | Value::Null => true,
            _ => !fields.has(section),
        };
        if empty && readable {
            fields.require(section, &format!("no {noun} is configured"), None);
        }
    }
}

/// `service` as it is written.
#[derive(Default)]
struct Written {
    extensions: Vec<Reference>,
    pipelines: BTreeMap<PipelineId, Wiring>,
    /// There are some, even if they could not be read.
    has_pipelines: bool,
    telemetry: Telemetry,
}

fn service(at: &Cursor<'_>, report: &Report) -> Written {
    let mut fields = Fields::of(at, report);
    let extensions = pipeline::once(fields.get("extensions", pipeline::references).unwrap_or_default());
    let mut written = Written { extensions, ..Written::default() };
    if let Some(at) = fields.find("pipelines") {
        written.has_pipelines = !matches!(&at.node.value, Value::Map(entries) if entries.is_empty());
        written.pipelines = pipeline::pipelines(&at, report);
    }
    written.has_pipelines |= matches!(at.node.value, Value::Bad) || fields.failed("pipelines");
    written.telemetry = fields.get("telemetry", telemetry::telemetry).unwrap_or_default();
    fields.finish();
    written
}

impl Written {
    fn finish(self) -> Service {
        let ids = |references: Vec<Reference>| -> Vec<ComponentId> {
            references.into_iter().map(|reference| reference.id).collect()
        };
        let pipeline = |wiring: Wiring| Pipeline {
            receivers: ids(wiring.receivers),
            processors: ids(wiring.processors),
            exporters: ids(wiring.exporters),
            uid: wiring.uid,
            carries: wiring.carries,
        };
        Service {
            extensions: ids(self.extensions),
            pipelines: self.pipelines.into_iter().map(|(id, wiring)| (id, pipeline(wiring))).collect(),
            telemetry: self.telemetry,
        }
    }
}
