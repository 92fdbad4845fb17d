//! `service::pipelines`: what is wired to what.

use std::collections::{BTreeMap, HashSet};

use kubewake_otlp::Signal;

use super::{
    cursor::Cursor,
    fields::Fields,
    id::{self, IdError},
    report::{Report, finding},
    scalar,
};
use crate::{
    ComponentId, PipelineId,
    problem::{crop, label},
    yaml::{Span, Value},
};

/// A reference to a component, with its place.
#[derive(Clone)]
pub(crate) struct Reference {
    pub(crate) id: ComponentId,
    pub(crate) path: String,
    pub(crate) span: Span,
}

/// A pipeline as it is written.
pub(crate) struct Wiring {
    pub(crate) receivers: Vec<Reference>,
    pub(crate) processors: Vec<Reference>,
    pub(crate) exporters: Vec<Reference>,
    pub(crate) uid: Option<String>,
    pub(crate) carries: Vec<String>,
}

/// Reads all pipelines.
pub(crate) fn pipelines(at: &Cursor<'_>, report: &Report) -> BTreeMap<PipelineId, Wiring> {
    let mut pipelines = BTreeMap::new();
    let entries = match &at.node.value {
        Value::Map(entries) => {
            report.has_public_keys(entries);
            entries.as_slice()
        }
        Value::Null | Value::Bad => return pipelines,
        _ => {
            scalar::wrong_type::<()>(at, report, "a map", None);
            return pipelines;
        }
    };
    for entry in entries {
        let wiring = wiring(&at.entry(entry), report);
        let refuse = |message, help| report.add_error(finding(at.join(&entry.key.text), entry.key.span, message, help));
        match id::pipeline(&entry.key.text) {
            Ok(id) => {
                if pipelines.contains_key(&id) {
                    refuse(format!("the pipeline `{id}` is already defined"), None);
                }
                pipelines.insert(id, wiring);
            }
            Err(error) => {
                let (message, help) = bad_id(&entry.key.text, error, report);
                refuse(message, help);
            }
        }
    }
    pipelines
}

fn bad_id(text: &str, error: IdError, report: &Report) -> (String, Option<String>) {
    let signals = Signal::ALL.map(Signal::name);
    let kind = text.split('/').next().unwrap_or_default().trim();
    match error {
        IdError::UnknownSignal if kind == "profiles" => (
            "the signal `profiles` is not supported by this build".into(),
            report.suggest("", &signals, "known signals"),
        ),
        IdError::UnknownSignal => {
            (format!("unknown signal `{}`", label(kind)), report.suggest(kind, &signals, "known signals"))
        }
        _ => (
            format!("the id \"{}\" {error}", label(text)),
            Some("a pipeline is called `signal` or `signal/name`, such as `traces` or `traces/backend`".into()),
        ),
    }
}

fn wiring(at: &Cursor<'_>, report: &Report) -> Wiring {
    let mut fields = Fields::of(at, report);
    let mut list = |name| fields.get(name, references);
    let (receivers, processors, exporters) = (list("receivers"), list("processors"), list("exporters"));
    needs(&fields, "receivers", "receiver", receivers.as_deref());
    needs(&fields, "exporters", "exporter", exporters.as_deref());
    let uid = fields.text("uid");
    let carries = fields.get("carries", scalar::texts).unwrap_or_default();
    fields.finish();
    let wiring = Wiring {
        receivers: once(receivers.unwrap_or_default()),
        processors: processors.unwrap_or_default(),
        exporters: once(exporters.unwrap_or_default()),
        uid,
        carries,
    };
    same_processor(report, &wiring.processors);
    wiring
}

pub(crate) fn references(at: &Cursor<'_>, report: &Report) -> Option<Vec<Reference>> {
    let Some(items) = at.items() else {
        report.is_public(at);
        let help = match (&at.node.value, &at.node.origin) {
            (Value::String(text), None) => Some(format!("write it as a list: [{}]", crop(text))),
            _ => None,
        };
        return scalar::wrong_type(at, report, "a list", help);
    };
    let read = |item: Cursor<'_>| {
        let id = id::reference(&item, report)?;
        Some(Reference { id, path: at.path().to_owned(), span: item.span() })
    };
    Some(items.filter_map(read).collect())
}

/// A list that is not there, or empty. One that could not be read was reported already.
fn needs(fields: &Fields<'_, '_>, name: &str, noun: &str, list: Option<&[Reference]>) {
    let written_empty = list.is_some_and(<[Reference]>::is_empty) && empty_list(&fields.place(name));
    if written_empty || !fields.has(name) {
        fields.require(name, &format!("the pipeline `{}` must have at least one {noun}", fields.at.name()), None);
    }
}

fn empty_list(at: &Cursor<'_>) -> bool {
    matches!(&at.node.value, Value::Seq(items) if items.is_empty())
}

/// The Collector takes a receiver or exporter that is listed twice as listed once.
pub(crate) fn once(references: Vec<Reference>) -> Vec<Reference> {
    let mut seen = HashSet::new();
    references.into_iter().filter(|reference| seen.insert(reference.id.clone())).collect()
}

fn same_processor(report: &Report, processors: &[Reference]) {
    let mut seen = HashSet::new();
    for reference in processors.iter().filter(|reference| !seen.insert(&reference.id)) {
        let message = format!("the processor `{}` is listed more than once", crop(reference.id.as_str()));
        let help = "remove it here, or define a second one with a name of its own".to_owned();
        report.add_error(finding(reference.path.clone(), reference.span, message, help));
    }
}
