//! Checks that need the whole document: that every named component exists, and is used.

use std::collections::{BTreeMap, BTreeSet};

use kubewake_otlp::Signal;

use super::{
    component::DecodedSection,
    connectors, context_uses,
    pipeline::{ComponentReference, DecodedPipeline},
    report::{AuthUse, ConnectionSide, DecodeReport, StorageUse, new_finding},
    suggest,
};
use crate::{
    ComponentId, PipelineId,
    component::{ComponentKind, PipelinePlace, PlaceProblem},
    extension::authenticator_help,
    model::{ConnectorConfig, ExporterConfig, ExtensionConfig, ProcessorConfig, ReceiverConfig},
    problem::{ProblemSeverity, crop},
};

/// The sections of a document that refer to each other.
pub(crate) struct DocumentSections<'a> {
    pub(crate) receivers: &'a DecodedSection<ReceiverConfig>,
    pub(crate) processors: &'a DecodedSection<ProcessorConfig>,
    pub(crate) exporters: &'a DecodedSection<ExporterConfig>,
    pub(crate) connectors: &'a DecodedSection<ConnectorConfig>,
    pub(crate) extensions: &'a DecodedSection<ExtensionConfig>,
    pub(crate) pipelines: &'a BTreeMap<PipelineId, DecodedPipeline>,
    pub(crate) running: &'a [ComponentReference],
}

pub(crate) fn check(parts: &DocumentSections<'_>, report: &DecodeReport) {
    let mut used = UsedComponents::default();
    for (id, wiring) in parts.pipelines {
        resolve(report, &wiring.receivers, parts.receivers, Some(parts.connectors));
        resolve(report, &wiring.processors, parts.processors, None);
        resolve(report, &wiring.exporters, parts.exporters, Some(parts.connectors));
        used.receivers.extend(ids(&wiring.receivers));
        used.processors.extend(ids(&wiring.processors));
        used.exporters.extend(ids(&wiring.exporters));
        check_places(report, id.signal, wiring, parts);
    }
    connectors::check(parts, report);
    resolve(report, parts.running, parts.extensions, None);
    used.extensions.extend(ids(parts.running));
    for auth in report.take_auth() {
        check_authenticator(report, &auth, parts.extensions, &used.extensions);
    }
    for storage in report.take_storages() {
        check_storage(report, &storage, parts.extensions, &used.extensions);
    }
    context_uses::check(parts, report);
    // A part of `service` that could not be read may use any component.
    if !report.error_within(0, "service") {
        warn_unused(report, parts.receivers, &used.receivers);
        warn_unused(report, parts.processors, &used.processors);
        warn_unused(report, parts.exporters, &used.exporters);
        warn_unused(report, parts.connectors, &used.receivers.union(&used.exporters).cloned().collect());
        warn_unused(report, parts.extensions, &used.extensions);
    }
}

fn ids(references: &[ComponentReference]) -> impl Iterator<Item = ComponentId> {
    references.iter().map(|reference| reference.id.clone())
}

/// The references to components whose settings could be read.
fn readable<'a, T>(
    references: &'a [ComponentReference],
    section: &'a DecodedSection<T>,
) -> impl Iterator<Item = (&'a ComponentReference, &'a T)> {
    references.iter().filter_map(|reference| Some((reference, section.components.get(&reference.id)?)))
}

#[derive(Default)]
struct UsedComponents {
    receivers: BTreeSet<ComponentId>,
    processors: BTreeSet<ComponentId>,
    exporters: BTreeSet<ComponentId>,
    extensions: BTreeSet<ComponentId>,
}

/// Reports references to components that are in neither section.
fn resolve<T: ComponentKind>(
    report: &DecodeReport,
    references: &[ComponentReference],
    section: &DecodedSection<T>,
    connectors: Option<&DecodedSection<ConnectorConfig>>,
) {
    let is_declared = |id: &ComponentId| {
        section.declared.contains_key(id) || connectors.is_some_and(|section| section.declared.contains_key(id))
    };
    for reference in references.iter().filter(|reference| !is_declared(&reference.id)) {
        let (message, help) = describe_dangling(report, &reference.id, section);
        report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
    }
}

fn describe_dangling<T: ComponentKind>(
    report: &DecodeReport,
    id: &ComponentId,
    section: &DecodedSection<T>,
) -> (String, Option<String>) {
    let noun = T::NOUN;
    let declared = section.declared.keys();
    let known: Vec<&str> = declared.map(ComponentId::as_str).take(suggest::MAX_SUGGESTED_WORDS + 1).collect();
    let help = match known.as_slice() {
        [] => Some(format!("define it under `{}`", T::SECTION)),
        known => report.suggest(id.as_str(), known, &format!("configured {}", T::SECTION)),
    };
    (format!("the {noun} `{}` is not configured", crop(id.as_str())), help)
}

/// Checks that each component of a pipeline supports the signal, and what components say about their place.
fn check_places(report: &DecodeReport, signal: Signal, wiring: &DecodedPipeline, parts: &DocumentSections<'_>) {
    for (reference, receiver) in readable(&wiring.receivers, parts.receivers) {
        check_signal(report, ReceiverConfig::NOUN, signal, reference, receiver.signals());
    }
    let mut processors_before = Vec::new();
    for (reference, processor) in readable(&wiring.processors, parts.processors) {
        let place = PipelinePlace { signal, id: &reference.id, processors_before: &processors_before };
        check_signal(report, ProcessorConfig::NOUN, signal, reference, processor.signals());
        report_place_problems(report, reference, processor.check_place(&place));
        // One of each type is enough for the checks, and keeps their time in proportion to the document.
        let is_same_type =
            |before: &&ProcessorConfig| std::mem::discriminant(*before) == std::mem::discriminant(processor);
        if !processors_before.iter().any(is_same_type) {
            processors_before.push(processor);
        }
    }
    for (reference, exporter) in readable(&wiring.exporters, parts.exporters) {
        let place = PipelinePlace { signal, id: &reference.id, processors_before: &processors_before };
        check_signal(report, ExporterConfig::NOUN, signal, reference, exporter.signals());
        report_place_problems(report, reference, exporter.check_place(&place));
    }
}

/// Refuses a component that does not support the signal of its pipeline.
fn check_signal(
    report: &DecodeReport,
    noun: &str,
    signal: Signal,
    reference: &ComponentReference,
    known: &'static [Signal],
) {
    if known.contains(&signal) {
        return;
    }
    let message = format!("the {noun} `{}` does not support {signal}", reference.id);
    let known: Vec<&str> = known.iter().map(|signal| signal.name()).collect();
    let help = format!("supported signals: {}", known.join(" and "));
    report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
}

fn report_place_problems(report: &DecodeReport, reference: &ComponentReference, problems: Vec<PlaceProblem>) {
    for PlaceProblem { severity, message, help } in problems {
        let finding = new_finding(reference.path.clone(), reference.span, message, help);
        match severity {
            ProblemSeverity::Error => report.add_error(finding),
            ProblemSeverity::Warning => report.add_warning(finding),
        }
    }
}

/// Checks that an authenticator is defined and enabled, and serves the right end of the connection.
fn check_authenticator(
    report: &DecodeReport,
    auth: &AuthUse,
    extensions: &DecodedSection<ExtensionConfig>,
    running: &BTreeSet<ComponentId>,
) {
    let refuse = |message: String, help: Option<String>| {
        report.add_error(new_finding(auth.path.clone(), auth.span, message, help));
    };
    let id = &auth.id;
    if !extensions.declared.contains_key(id) {
        let (message, help) = describe_dangling(report, id, extensions);
        return refuse(message, help);
    }
    if !running.contains(id) {
        refuse(format!("the extension `{id}` is not enabled"), Some(format!("add `{id}` to `service::extensions`")));
    }
    let Some(extension) = extensions.components.get(id) else { return };
    if !extension.authenticates(auth.side) {
        let side = match auth.side {
            ConnectionSide::Server => "server",
            ConnectionSide::Client => "client",
        };
        let help = authenticator_help(auth.side).to_owned();
        refuse(format!("the extension `{id}` is not a {side} authenticator"), Some(help));
    }
}

/// Checks that an extension that keeps state is defined and enabled.
fn check_storage(
    report: &DecodeReport,
    storage: &StorageUse,
    extensions: &DecodedSection<ExtensionConfig>,
    running: &BTreeSet<ComponentId>,
) {
    let refuse = |message: String, help: Option<String>| {
        report.add_error(new_finding(storage.path.clone(), storage.span, message, help));
    };
    let id = &storage.id;
    if !extensions.declared.contains_key(id) {
        let (message, help) = describe_dangling(report, id, extensions);
        return refuse(message, help);
    }
    if !running.contains(id) {
        refuse(format!("the extension `{id}` is not enabled"), Some(format!("add `{id}` to `service::extensions`")));
    }
    if extensions.components.get(id).is_some_and(|extension| !extension.keeps_state()) {
        let help = "name a `file_storage` extension".to_owned();
        refuse(format!("the extension `{id}` does not keep state"), Some(help));
    }
}

/// Warns about unused components, but not about those that could not be read.
fn warn_unused<T: ComponentKind>(report: &DecodeReport, section: &DecodedSection<T>, used: &BTreeSet<ComponentId>) {
    let read = section.declared.iter().filter(|(id, _)| section.components.contains_key(id));
    for (id, span) in read.filter(|(id, _)| !used.contains(id)) {
        let message = match T::NOUN {
            "extension" => format!("the extension `{id}` is not listed in `service::extensions` and does not run"),
            noun => format!("the {noun} `{id}` is not used by any pipeline and does not run"),
        };
        report.add_warning(new_finding(format!("{}::{id}", T::SECTION), *span, message, None));
    }
}
