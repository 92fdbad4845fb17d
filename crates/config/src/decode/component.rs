//! The sections that hold components: `receivers`, `processors`, `exporters`, `extensions`.

use std::collections::BTreeMap;

use super::{
    attributes, catalog,
    cursor::Cursor,
    exporter, extension, filter, id, kubernetes, processor, receiver, redaction,
    report::{Report, finding},
    sampler, scalar, tail_sampling,
};
use crate::{
    ComponentId,
    model::{Exporter, Extension, Processor, Receiver},
    problem::label,
    yaml::{Span, Value},
};

/// How the settings of one type of component are read.
type Read<T> = fn(&Cursor<'_>, &Report) -> Option<T>;

/// A section: what its components are called, which types there are, and which the Collector has beyond them.
pub(crate) struct Kind<T: 'static> {
    pub(crate) section: &'static str,
    pub(crate) noun: &'static str,
    types: &'static [(&'static str, Read<T>)],
    elsewhere: &'static str,
}

pub(crate) const RECEIVERS: Kind<Receiver> = Kind {
    section: "receivers",
    noun: "receiver",
    types: &[("otlp", receiver::otlp), ("opencensus", receiver::opencensus)],
    elsewhere: catalog::RECEIVERS,
};

pub(crate) const PROCESSORS: Kind<Processor> = Kind {
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

pub(crate) const EXPORTERS: Kind<Exporter> = Kind {
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

pub(crate) const EXTENSIONS: Kind<Extension> = Kind {
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

/// What a section declares.
pub(crate) struct Section<T> {
    /// Every id that is there, even if its settings are wrong, so that a reference to it is not called dangling.
    pub(crate) declared: BTreeMap<ComponentId, Span>,
    /// Those whose settings could be read.
    pub(crate) components: BTreeMap<ComponentId, T>,
}

impl<T> Section<T> {
    pub(crate) fn empty() -> Self {
        Self { declared: BTreeMap::new(), components: BTreeMap::new() }
    }
}

/// Reads all components of a section.
pub(crate) fn section<T>(at: &Cursor<'_>, report: &Report, kind: &Kind<T>) -> Section<T> {
    let mut section = Section::empty();
    let entries = match &at.node.value {
        Value::Map(entries) => {
            report.has_public_keys(entries);
            entries.as_slice()
        }
        Value::Null | Value::Bad => return section,
        _ => {
            scalar::wrong_type::<()>(at, report, "a map", None);
            return section;
        }
    };
    for entry in entries {
        let (name, span) = (entry.key.text.as_str(), entry.key.span);
        let refuse = |message, help| report.add_error(finding(at.join(name), span, message, help));
        let id = match id::component(name) {
            Ok(id) => id,
            Err(error) => {
                refuse(format!("the id \"{}\" {error}", label(name)), Some(id::HELP.to_owned()));
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

fn unknown<T>(kind: &Kind<T>, name: &str, report: &Report) -> (String, Option<String>) {
    let known: Vec<&str> = kind.types.iter().map(|(name, _)| *name).collect();
    let (noun, all) = (kind.noun, format!("known {}", kind.section));
    if let Some(instead) = catalog::instead_of(kind.section, name) {
        return (format!("the {noun} `{name}` was removed from the Collector"), Some(instead.to_owned()));
    }
    if kind.elsewhere.split_whitespace().any(|other| other == name) {
        let message = format!("the {noun} `{name}` is not supported by this build");
        return (message, report.suggest("", &known, &all));
    }
    (format!("unknown {noun} `{}`", label(name)), report.suggest(name, &known, &all))
}
