//! What can be checked only when the whole document was read: that everything named exists, and is used.

use std::collections::{BTreeMap, BTreeSet};

use kubewake_otlp::Signal;

use super::{
    component::Section,
    context,
    pipeline::{Reference, Wiring},
    report::{AuthUse, Report, Side, finding},
    suggest,
};
use crate::{
    ComponentId, PipelineId,
    model::{BasicAuth, Exporter, Extension, Processor, Receiver, SamplerMode},
    problem::crop,
    yaml::Span,
};

/// The parts of a document that refer to each other.
pub(crate) struct Parts<'a> {
    pub(crate) receivers: &'a Section<Receiver>,
    pub(crate) processors: &'a Section<Processor>,
    pub(crate) exporters: &'a Section<Exporter>,
    pub(crate) extensions: &'a Section<Extension>,
    pub(crate) pipelines: &'a BTreeMap<PipelineId, Wiring>,
    /// `service::extensions`
    pub(crate) running: &'a [Reference],
}

/// Checks all references.
pub(crate) fn check(parts: &Parts<'_>, report: &Report) {
    let mut used = Used::default();
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
        endpoints(report, id.signal, &wiring.exporters, parts.exporters);
        conditions(report, id.signal, &wiring.processors, parts.processors);
        sampled_before(report, &wiring.processors, parts.processors);
        let receivers = wiring.receivers.iter().filter_map(|reference| {
            parts.receivers.components.get(&reference.id).map(|receiver| (reference, receiver.signals()))
        });
        signals(report, "receiver", id.signal, receivers);
        let processors = wiring.processors.iter().filter_map(|reference| {
            parts.processors.components.get(&reference.id).map(|processor| (reference, processor.signals()))
        });
        signals(report, "processor", id.signal, processors);
        routing(report, id.signal, &wiring.exporters, parts.exporters);
    }
    resolve(report, "extension", parts.running, &parts.extensions.declared);
    used.extensions.extend(parts.running.iter().map(|reference| reference.id.clone()));
    for auth in report.take_auth() {
        authenticator(report, &auth, parts.extensions, &used.extensions);
    }
    context::check(parts, report);
    // What uses a component may be what could not be read.
    if !report.error_within(0, "service") {
        unused(report, "receiver", parts.receivers, &used.receivers);
        unused(report, "processor", parts.processors, &used.processors);
        unused(report, "exporter", parts.exporters, &used.exporters);
        unused(report, "extension", parts.extensions, &used.extensions);
    }
}

#[derive(Default)]
struct Used {
    receivers: BTreeSet<ComponentId>,
    processors: BTreeSet<ComponentId>,
    exporters: BTreeSet<ComponentId>,
    extensions: BTreeSet<ComponentId>,
}

fn resolve(report: &Report, noun: &str, references: &[Reference], declared: &BTreeMap<ComponentId, Span>) {
    for reference in references.iter().filter(|reference| !declared.contains_key(&reference.id)) {
        let (message, help) = dangling(report, noun, &reference.id, declared);
        report.add_error(finding(reference.path.clone(), reference.span, message, help));
    }
}

fn dangling(
    report: &Report,
    noun: &str,
    id: &ComponentId,
    declared: &BTreeMap<ComponentId, Span>,
) -> (String, Option<String>) {
    let known: Vec<&str> = declared.keys().map(ComponentId::as_str).take(suggest::MAX_KNOWN + 1).collect();
    let help = match known.as_slice() {
        [] => Some(format!("define it under `{noun}s`")),
        known => report.suggest(id.as_str(), known, &format!("configured {noun}s")),
    };
    (format!("the {noun} `{}` is not configured", crop(id.as_str())), help)
}

/// An exporter that has endpoints for other signals only.
fn endpoints(report: &Report, signal: Signal, references: &[Reference], exporters: &Section<Exporter>) {
    for reference in references {
        let Some(Exporter::OtlpHttp(exporter)) = exporters.components.get(&reference.id) else { continue };
        let urls = [&exporter.traces_url, &exporter.metrics_url, &exporter.logs_url];
        let url = match signal {
            Signal::Traces => &exporter.traces_url,
            Signal::Metrics => &exporter.metrics_url,
            Signal::Logs => &exporter.logs_url,
        };
        // Without any it was reported where it is defined.
        if url.is_none() && urls.into_iter().any(Option::is_some) {
            let message = format!("the exporter `{}` has no endpoint for {signal}", reference.id);
            let help = format!("set its `endpoint` or `{signal}_endpoint`");
            report.add_error(finding(reference.path.clone(), reference.span, message, help));
        }
    }
}

/// A routing key that says nothing about the signal.
fn routing(report: &Report, signal: Signal, references: &[Reference], exporters: &Section<Exporter>) {
    for reference in references {
        let Some(Exporter::LoadBalancing(exporter)) = exporters.components.get(&reference.id) else { continue };
        let Some(key) = &exporter.routing else { continue };
        let known: &[&str] = match signal {
            Signal::Traces => &["traceID", "service", "resource", "attributes"],
            Signal::Logs => &["traceID", "service", "resource", "attributes"],
            Signal::Metrics => &["service", "resource", "metric", "streamID", "attributes"],
        };
        if !known.contains(&key.name()) {
            let message = format!("the exporter `{}` cannot route {signal} by `{}`", reference.id, key.name());
            let help = format!("`routing_key` for {signal} is one of: {}", known.join(", "));
            report.add_error(finding(reference.path.clone(), reference.span, message, help));
        }
    }
}

/// Components that cannot work on the signal of their pipeline.
fn signals<'a>(
    report: &Report,
    noun: &str,
    signal: Signal,
    references: impl Iterator<Item = (&'a Reference, &'static [Signal])>,
) {
    for (reference, known) in references.filter(|(_, known)| !known.contains(&signal)) {
        let message = format!("the {noun} `{}` does not work on {signal}", reference.id);
        let known: Vec<&str> = known.iter().map(|signal| signal.name()).collect();
        let help = format!("it can be part of pipelines of {}", known.join(" and "));
        report.add_error(finding(reference.path.clone(), reference.span, message, help));
    }
}

/// A processor that matches records by what those of this signal do not have.
fn conditions(report: &Report, signal: Signal, references: &[Reference], processors: &Section<Processor>) {
    for reference in references {
        let Some(Processor::Attributes(attributes)) = processors.components.get(&reference.id) else { continue };
        let matches = [&attributes.include, &attributes.exclude];
        for field in matches.into_iter().flatten().filter_map(|found| found.out_of_place(signal)) {
            let message = format!("the processor `{}` matches by `{field}`, which {signal} do not have", reference.id);
            let help = format!("define a second one for {signal}");
            report.add_error(finding(reference.path.clone(), reference.span, message, help));
        }
    }
}

/// A sampler by a hash behind another one: what that keeps says so, and a hash cannot go on from there.
fn sampled_before(report: &Report, references: &[Reference], processors: &Section<Processor>) {
    let samplers = references.iter().filter_map(|reference| match processors.components.get(&reference.id) {
        Some(Processor::ProbabilisticSampler(sampler)) => Some((reference, sampler)),
        _ => None,
    });
    for (reference, sampler) in samplers.skip(1) {
        if sampler.mode == SamplerMode::HashSeed && sampler.fail_closed {
            let message = format!(
                "the processor `{}` drops everything: `mode: hash_seed` cannot decide on what was sampled before",
                reference.id
            );
            let help = "use `mode: proportional` or `mode: equalizing`, which go on from there";
            report.add_warning(finding(reference.path.clone(), reference.span, message, Some(help.into())));
        }
    }
}

/// An authenticator must be defined, run, and serve the right end of the connection.
fn authenticator(report: &Report, auth: &AuthUse, extensions: &Section<Extension>, running: &BTreeSet<ComponentId>) {
    let refuse = |message: String, help: Option<String>| {
        report.add_error(finding(auth.path.clone(), auth.span, message, help));
    };
    let id = &auth.id;
    if !extensions.declared.contains_key(id) {
        let (message, help) = dangling(report, "extension", id, &extensions.declared);
        return refuse(message, help);
    }
    if !running.contains(id) {
        refuse(format!("the extension `{id}` does not run"), Some(format!("add `{id}` to `service::extensions`")));
    }
    let Some(extension) = extensions.components.get(id) else { return };
    let (server, client) = match extension {
        Extension::HealthCheck(_) => (false, false),
        Extension::BasicAuth(BasicAuth::Server(_)) => (true, false),
        Extension::BasicAuth(BasicAuth::Client(_)) | Extension::OAuth2Client(_) => (false, true),
        Extension::BearerTokenAuth(_) => (true, true),
    };
    match auth.side {
        Side::Server if !server => refuse(
            format!("the extension `{id}` cannot authenticate those who call"),
            Some("a server takes `basicauth` with `htpasswd`, or `bearertokenauth`".into()),
        ),
        Side::Client if !client => refuse(
            format!("the extension `{id}` cannot authenticate us towards others"),
            Some("a client takes `basicauth` with `client_auth`, `bearertokenauth` or `oauth2client`".into()),
        ),
        _ => {}
    }
}

/// Components that nothing uses. Of one that could not be read enough was said.
fn unused<T>(report: &Report, noun: &str, section: &Section<T>, used: &BTreeSet<ComponentId>) {
    let read = section.declared.iter().filter(|(id, _)| section.components.contains_key(id));
    for (id, span) in read.filter(|(id, _)| !used.contains(id)) {
        let message = match noun {
            "extension" => format!("the extension `{id}` is not listed in `service::extensions` and does not run"),
            noun => format!("the {noun} `{id}` is in no pipeline and does not run"),
        };
        report.add_warning(finding(format!("{noun}s::{id}"), *span, message, None));
    }
}
