//! The sections that hold components: `receivers`, `processors`, `exporters`, `extensions`.

use std::collections::BTreeMap;

use super::{
    attributes, catalog,
    cursor::Cursor,
    exporter, extension, filter, id, kubernetes, processor, receiver, redaction,
    report::{DecodeReport, new_finding},
    sampler, scalar, tail_sampling,
};
use crate::{
    ComponentId,
    model::{ExporterConfig, ExtensionConfig, ProcessorConfig, ReceiverConfig},
    problem::label,
    yaml::{NodeValue, TextSpan},
};

/// Reads the settings of one type of component.
type DecodeFn<T> = fn(&Cursor<'_>, &DecodeReport) -> Option<T>;

/// A section: the noun for its components, the types that this build has, and those that only the Collector
/// has.
pub(crate) struct SectionKind<T: 'static> {
    pub(crate) section: &'static str,
    pub(crate) noun: &'static str,
    types: &'static [(&'static str, DecodeFn<T>)],
    elsewhere: &'static str,
}

pub(crate) const RECEIVERS: SectionKind<ReceiverConfig> = SectionKind {
    section: "receivers",
    noun: "receiver",
    types: &[("otlp", receiver::otlp), ("opencensus", receiver::opencensus)],
    elsewhere: catalog::RECEIVERS,
};

pub(crate) const PROCESSORS: SectionKind<ProcessorConfig> = SectionKind {
    section: "processors",
    noun: "processor",
    types: &[
        ("batch", processor::batch),
        ("memory_limiter", processor::memory_limiter),
        ("filter", filter::filter),
        ("attributes", attributes::attributes),
        ("resource", attributes::resource),
        ("redaction", redaction::redaction),
        ("probabilistic_sampler", sampler::probabilistic),
        ("tail_sampling", tail_sampling::tail_sampling),
        ("k8s_attributes", kubernetes::k8s_attributes),
        ("k8sattributes", kubernetes::k8s_attributes),
    ],
    elsewhere: catalog::PROCESSORS,
};

pub(crate) const EXPORTERS: SectionKind<ExporterConfig> = SectionKind {
    section: "exporters",
    noun: "exporter",
    types: &[
        ("otlp", exporter::grpc),
        ("otlp_grpc", exporter::grpc),
        ("otlphttp", exporter::http),
        ("otlp_http", exporter::http),
        ("debug", exporter::debug),
        ("file", exporter::file),
        ("nop", exporter::nop),
        ("load_balancing", exporter::load_balancing),
        ("loadbalancing", exporter::load_balancing),
    ],
    elsewhere: catalog::EXPORTERS,
};

pub(crate) const EXTENSIONS: SectionKind<ExtensionConfig> = SectionKind {
    section: "extensions",
    noun: "extension",
    types: &[
        ("health_check", extension::health_check),
        ("basicauth", extension::basic_auth),
        ("bearertokenauth", extension::bearer_token_auth),
        ("oauth2client", extension::oauth2_client),
    ],
    elsewhere: catalog::EXTENSIONS,
};

pub(crate) struct DecodedSection<T> {
    /// All ids, even of components with invalid settings, so that references to these are not called dangling.
    pub(crate) declared: BTreeMap<ComponentId, TextSpan>,
    /// The components whose settings could be read.
    pub(crate) components: BTreeMap<ComponentId, T>,
}

impl<T> DecodedSection<T> {
    pub(crate) fn empty() -> Self {
        Self { declared: BTreeMap::new(), components: BTreeMap::new() }
    }
}

/// Reads all components of a section.
pub(crate) fn section<T>(at: &Cursor<'_>, report: &DecodeReport, kind: &SectionKind<T>) -> DecodedSection<T> {
    let mut section = DecodedSection::empty();
    let entries = match &at.node.value {
        NodeValue::Map(entries) => {
            report.mark_keys_public(entries);
            entries.as_slice()
        }
        NodeValue::Null | NodeValue::Bad => return section,
        _ => {
            scalar::wrong_type::<()>(at, report, "a map", None);
            return section;
        }
    };
    for entry in entries {
        let name = entry.key.text.as_str();
        let span = entry.key.span;
        let refuse = |message, help| report.add_error(new_finding(at.join(name), span, message, help));
        let id = match id::component(name) {
            Ok(id) => id,
            Err(error) => {
                refuse(format!("the id \"{}\" {error}", label(name)), Some(id::ID_HELP.to_owned()));
                continue;
            }
        };
        if section.declared.insert(id.clone(), span).is_some() {
            refuse(
                format!("the {} `{id}` is already defined", kind.noun),
                Some("give one of them another name".into()),
            );
            continue;
        }
        match kind.types.iter().find(|(name, _)| *name == id.kind()) {
            Some((_, read)) => {
                if let Some(component) = read(&at.entry(entry), report) {
                    section.components.insert(id, component);
                }
            }
            None => {
                let (message, help) = unknown(kind, id.kind(), report);
                refuse(message, help);
            }
        }
    }
    section
}

fn unknown<T>(kind: &SectionKind<T>, name: &str, report: &DecodeReport) -> (String, Option<String>) {
    let known: Vec<&str> = kind.types.iter().map(|(name, _)| *name).collect();
    let noun = kind.noun;
    let all = format!("known {}", kind.section);
    if let Some(instead) = catalog::replacement_for(kind.section, name) {
        return (format!("the {noun} `{name}` was removed from the Collector"), Some(instead.to_owned()));
    }
    if kind.elsewhere.split_whitespace().any(|other| other == name) {
        let message = format!("the {noun} `{name}` is not supported by this build");
        return (message, report.suggest("", &known, &all));
    }
    (format!("unknown {noun} `{}`", label(name)), report.suggest(name, &known, &all))
}
