//! `service::pipelines`: how components are connected.

use std::collections::{BTreeMap, HashSet};

use kubewake_otlp::Signal;

use super::{
    cursor::Cursor,
    field_reader::FieldReader,
    id::{self, IdError},
    report::{DecodeReport, new_finding},
    scalar,
};
use crate::{
    ComponentId, PipelineId,
    problem::{crop, label},
    yaml::{NodeValue, TextSpan},
};

/// A reference to a component, with its position.
#[derive(Clone)]
pub(crate) struct ComponentReference {
    pub(crate) id: ComponentId,
    pub(crate) path: String,
    pub(crate) span: TextSpan,
}

/// A pipeline before references are checked.
pub(crate) struct DecodedPipeline {
    pub(crate) receivers: Vec<ComponentReference>,
    pub(crate) processors: Vec<ComponentReference>,
    pub(crate) exporters: Vec<ComponentReference>,
    pub(crate) uid: Option<String>,
    pub(crate) carries: Vec<String>,
}

pub(crate) fn pipelines(at: &Cursor<'_>, report: &DecodeReport) -> BTreeMap<PipelineId, DecodedPipeline> {
    let mut pipelines = BTreeMap::new();
    let entries = match &at.node.value {
        NodeValue::Map(entries) => {
            report.mark_keys_public(entries);
            entries.as_slice()
        }
        NodeValue::Null | NodeValue::Bad => return pipelines,
        _ => {
            scalar::wrong_type::<()>(at, report, "a map", None);
            return pipelines;
        }
    };
    for entry in entries {
        let wiring = wiring(&at.entry(entry), report);
        let refuse =
            |message, help| report.add_error(new_finding(at.join(&entry.key.text), entry.key.span, message, help));
        match id::pipeline(&entry.key.text) {
            Ok(id) => {
                if pipelines.contains_key(&id) {
                    refuse(format!("the pipeline `{id}` is already defined"), None);
                }
                pipelines.insert(id, wiring);
            }
            Err(error) => {
                let (message, help) = describe_bad_id(&entry.key.text, error, report);
                refuse(message, help);
            }
        }
    }
    pipelines
}

fn describe_bad_id(text: &str, error: IdError, report: &DecodeReport) -> (String, Option<String>) {
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
            Some("the id of a pipeline is `signal` or `signal/name`, such as `traces` or `traces/backend`".into()),
        ),
    }
}

fn wiring(at: &Cursor<'_>, report: &DecodeReport) -> DecodedPipeline {
    let mut fields = FieldReader::new(at, report);
    let mut list = |name| fields.get(name, references);
    let receivers = list("receivers");
    let processors = list("processors");
    let exporters = list("exporters");
    check_list_not_empty(&fields, "receivers", "receiver", receivers.as_deref());
    check_list_not_empty(&fields, "exporters", "exporter", exporters.as_deref());
    let uid = fields.text("uid");
    let carries = fields.get("carries", scalar::texts).unwrap_or_default();
    fields.finish();
    let wiring = DecodedPipeline {
        receivers: dedup_references(receivers.unwrap_or_default()),
        processors: processors.unwrap_or_default(),
        exporters: dedup_references(exporters.unwrap_or_default()),
        uid,
        carries,
    };
    report_duplicate_processors(report, &wiring.processors);
    wiring
}

pub(crate) fn references(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<ComponentReference>> {
    let Some(items) = at.items() else {
        report.mark_public(at);
        let help = match (&at.node.value, &at.node.origin) {
            (NodeValue::String(text), None) => Some(format!("write it as a list: [{}]", crop(text))),
            _ => None,
        };
        return scalar::wrong_type(at, report, "a list", help);
    };
    let read = |item: Cursor<'_>| {
        let id = id::reference(&item, report)?;
        Some(ComponentReference { id, path: at.path().to_owned(), span: item.span() })
    };
    Some(items.filter_map(read).collect())
}

/// Reports a missing or empty list. One that could not be read was reported already.
fn check_list_not_empty(fields: &FieldReader<'_, '_>, name: &str, noun: &str, list: Option<&[ComponentReference]>) {
    let written_empty = list.is_some_and(<[ComponentReference]>::is_empty) && empty_list(&fields.cursor_at(name));
    if written_empty || !fields.has(name) {
        fields.require(name, &format!("the pipeline `{}` must have at least one {noun}", fields.at.name()), None);
    }
}

fn empty_list(at: &Cursor<'_>) -> bool {
    matches!(&at.node.value, NodeValue::Seq(items) if items.is_empty())
}

/// Removes duplicates: the Collector accepts a receiver or exporter that is listed twice.
pub(crate) fn dedup_references(references: Vec<ComponentReference>) -> Vec<ComponentReference> {
    let mut seen = HashSet::new();
    references.into_iter().filter(|reference| seen.insert(reference.id.clone())).collect()
}

fn report_duplicate_processors(report: &DecodeReport, processors: &[ComponentReference]) {
    let mut seen = HashSet::new();
    for reference in processors.iter().filter(|reference| !seen.insert(&reference.id)) {
        let message = format!("the processor `{}` is listed more than once", crop(reference.id.as_str()));
        let help = "remove the duplicate, or define another processor with its own name".to_owned();
        report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
    }
}
