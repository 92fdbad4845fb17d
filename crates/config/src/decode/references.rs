//! Checks that need the whole document: that every named component exists, and is used.

use std::collections::{BTreeMap, BTreeSet};

use kubewake_otlp::Signal;

use super::{
    component::DecodedSection,
    context_uses,
    pipeline::{ComponentReference, DecodedPipeline},
    report::{AuthUse, ConnectionSide, DecodeReport, new_finding},
    suggest,
};
use crate::{
    ComponentId, PipelineId,
    model::{BasicAuth, ExporterConfig, ExtensionConfig, ProcessorConfig, ReceiverConfig, SamplerMode},
    problem::crop,
    yaml::TextSpan,
};

/// The sections of a document that refer to each other.
pub(crate) struct DocumentSections<'a> {
    pub(crate) receivers: &'a DecodedSection<ReceiverConfig>,
    pub(crate) processors: &'a DecodedSection<ProcessorConfig>,
    pub(crate) exporters: &'a DecodedSection<ExporterConfig>,
    pub(crate) extensions: &'a DecodedSection<ExtensionConfig>,
    pub(crate) pipelines: &'a BTreeMap<PipelineId, DecodedPipeline>,
    pub(crate) running: &'a [ComponentReference],
}

pub(crate) fn check(parts: &DocumentSections<'_>, report: &DecodeReport) {
    let mut used = UsedComponents::default();
    for (id, wiring) in parts.pipelines {
        let lists = [
            ("receiver", &wiring.receivers, &parts.receivers.declared, &mut used.receivers),
            ("processor", &wiring.processors, &parts.processors.declared, &mut used.processors),
            ("exporter", &wiring.exporters, &parts.exporters.declared, &mut used.exporters),
        ];
        for (noun, references, declared, used) in lists {
            resolve(report, noun, references, declared);
            used.extend(references.iter().map(|reference| reference.id.clone()));
        }
        check_endpoints(report, id.signal, &wiring.exporters, parts.exporters);
        check_conditions(report, id.signal, &wiring.processors, parts.processors);
        warn_sampled_before(report, &wiring.processors, parts.processors);
        let receivers = wiring.receivers.iter().filter_map(|reference| {
            parts.receivers.components.get(&reference.id).map(|receiver| (reference, receiver.signals()))
        });
        check_signals(report, "receiver", id.signal, receivers);
        let processors = wiring.processors.iter().filter_map(|reference| {
            parts.processors.components.get(&reference.id).map(|processor| (reference, processor.signals()))
        });
        check_signals(report, "processor", id.signal, processors);
        check_routing_key(report, id.signal, &wiring.exporters, parts.exporters);
    }
    resolve(report, "extension", parts.running, &parts.extensions.declared);
    used.extensions.extend(parts.running.iter().map(|reference| reference.id.clone()));
    for auth in report.take_auth() {
        check_authenticator(report, &auth, parts.extensions, &used.extensions);
    }
    context_uses::check(parts, report);
    // A part of `service` that could not be read may use any component.
    if !report.error_within(0, "service") {
        warn_unused(report, "receiver", parts.receivers, &used.receivers);
        warn_unused(report, "processor", parts.processors, &used.processors);
        warn_unused(report, "exporter", parts.exporters, &used.exporters);
        warn_unused(report, "extension", parts.extensions, &used.extensions);
    }
}

#[derive(Default)]
struct UsedComponents {
    receivers: BTreeSet<ComponentId>,
    processors: BTreeSet<ComponentId>,
    exporters: BTreeSet<ComponentId>,
    extensions: BTreeSet<ComponentId>,
}

fn resolve(
    report: &DecodeReport,
    noun: &str,
    references: &[ComponentReference],
    declared: &BTreeMap<ComponentId, TextSpan>,
) {
    for reference in references.iter().filter(|reference| !declared.contains_key(&reference.id)) {
        let (message, help) = describe_dangling(report, noun, &reference.id, declared);
        report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
    }
}

fn describe_dangling(
    report: &DecodeReport,
    noun: &str,
    id: &ComponentId,
    declared: &BTreeMap<ComponentId, TextSpan>,
) -> (String, Option<String>) {
    let known: Vec<&str> = declared.keys().map(ComponentId::as_str).take(suggest::MAX_SUGGESTED_WORDS + 1).collect();
    let help = match known.as_slice() {
        [] => Some(format!("define it under `{noun}s`")),
        known => report.suggest(id.as_str(), known, &format!("configured {noun}s")),
    };
    (format!("the {noun} `{}` is not configured", crop(id.as_str())), help)
}

/// Refuses an exporter that has endpoints for other signals only.
fn check_endpoints(
    report: &DecodeReport,
    signal: Signal,
    references: &[ComponentReference],
    exporters: &DecodedSection<ExporterConfig>,
) {
    for reference in references {
        let Some(ExporterConfig::OtlpHttp(exporter)) = exporters.components.get(&reference.id) else { continue };
        let urls = [&exporter.traces_url, &exporter.metrics_url, &exporter.logs_url];
        let url = match signal {
            Signal::Traces => &exporter.traces_url,
            Signal::Metrics => &exporter.metrics_url,
            Signal::Logs => &exporter.logs_url,
        };
        // An exporter without any endpoint was reported at its definition.
        if url.is_none() && urls.into_iter().any(Option::is_some) {
            let message = format!("the exporter `{}` has no endpoint for {signal}", reference.id);
            let help = format!("set its `endpoint` or `{signal}_endpoint`");
            report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
        }
    }
}

/// Refuses a routing key that does not apply to the signal.
fn check_routing_key(
    report: &DecodeReport,
    signal: Signal,
    references: &[ComponentReference],
    exporters: &DecodedSection<ExporterConfig>,
) {
    for reference in references {
        let Some(ExporterConfig::LoadBalancing(exporter)) = exporters.components.get(&reference.id) else { continue };
        let Some(key) = &exporter.routing else { continue };
        let known: &[&str] = match signal {
            Signal::Traces => &["traceID", "service", "resource", "attributes"],
            Signal::Logs => &["traceID", "service", "resource", "attributes"],
            Signal::Metrics => &["service", "resource", "metric", "streamID", "attributes"],
        };
        if !known.contains(&key.name()) {
            let message = format!("the exporter `{}` cannot route {signal} by `{}`", reference.id, key.name());
            let help = format!("`routing_key` for {signal} is one of: {}", known.join(", "));
            report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
        }
    }
}

/// Refuses components that do not support the signal of their pipeline.
fn check_signals<'a>(
    report: &DecodeReport,
    noun: &str,
    signal: Signal,
    references: impl Iterator<Item = (&'a ComponentReference, &'static [Signal])>,
) {
    for (reference, known) in references.filter(|(_, known)| !known.contains(&signal)) {
        let message = format!("the {noun} `{}` does not support {signal}", reference.id);
        let known: Vec<&str> = known.iter().map(|signal| signal.name()).collect();
        let help = format!("supported signals: {}", known.join(" and "));
        report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
    }
}

/// Refuses a processor with conditions that do not apply to records of this signal.
fn check_conditions(
    report: &DecodeReport,
    signal: Signal,
    references: &[ComponentReference],
    processors: &DecodedSection<ProcessorConfig>,
) {
    for reference in references {
        let Some(ProcessorConfig::Attributes(attributes)) = processors.components.get(&reference.id) else { continue };
        let matches = [&attributes.include, &attributes.exclude];
        for field in matches.into_iter().flatten().filter_map(|found| found.unsupported_condition(signal)) {
            let message = format!("the processor `{}` matches by `{field}`, which {signal} do not have", reference.id);
            let help = format!("define a separate processor for {signal}");
            report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
        }
    }
}

/// Warns about a sampler by hash behind another sampler: kept items carry a probability, which a hash cannot
/// continue from.
fn warn_sampled_before(
    report: &DecodeReport,
    references: &[ComponentReference],
    processors: &DecodedSection<ProcessorConfig>,
) {
    let samplers = references.iter().filter_map(|reference| match processors.components.get(&reference.id) {
        Some(ProcessorConfig::ProbabilisticSampler(sampler)) => Some((reference, sampler)),
        _ => None,
    });
    for (reference, sampler) in samplers.skip(1) {
        if sampler.mode == SamplerMode::HashSeed && sampler.fail_closed {
            let message = format!(
                "the processor `{}` drops all items: `mode: hash_seed` does not support items that another sampler \
                 has sampled",
                reference.id
            );
            let help = "use `mode: proportional` or `mode: equalizing`, which continue from the earlier probability";
            report.add_warning(new_finding(reference.path.clone(), reference.span, message, Some(help.into())));
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
        let (message, help) = describe_dangling(report, "extension", id, &extensions.declared);
        return refuse(message, help);
    }
    if !running.contains(id) {
        refuse(format!("the extension `{id}` is not enabled"), Some(format!("add `{id}` to `service::extensions`")));
    }
    let Some(extension) = extensions.components.get(id) else { return };
    let (server, client) = match extension {
        ExtensionConfig::HealthCheck(_) => (false, false),
        ExtensionConfig::BasicAuth(BasicAuth::Server(_)) => (true, false),
        ExtensionConfig::BasicAuth(BasicAuth::Client(_)) | ExtensionConfig::OAuth2Client(_) => (false, true),
        ExtensionConfig::BearerTokenAuth(_) => (true, true),
    };
    match auth.side {
        ConnectionSide::Server if !server => refuse(
            format!("the extension `{id}` is not a server authenticator"),
            Some("for a server use `basicauth` with `htpasswd`, or `bearertokenauth`".into()),
        ),
        ConnectionSide::Client if !client => refuse(
            format!("the extension `{id}` is not a client authenticator"),
            Some("for a client use `basicauth` with `client_auth`, `bearertokenauth` or `oauth2client`".into()),
        ),
        _ => {}
    }
}

/// Warns about unused components, but not about those that could not be read.
fn warn_unused<T>(report: &DecodeReport, noun: &str, section: &DecodedSection<T>, used: &BTreeSet<ComponentId>) {
    let read = section.declared.iter().filter(|(id, _)| section.components.contains_key(id));
    for (id, span) in read.filter(|(id, _)| !used.contains(id)) {
        let message = match noun {
            "extension" => format!("the extension `{id}` is not listed in `service::extensions` and does not run"),
            noun => format!("the {noun} `{id}` is not used by any pipeline and does not run"),
        };
        report.add_warning(new_finding(format!("{noun}s::{id}"), *span, message, None));
    }
}
