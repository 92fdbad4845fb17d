//! The sections that hold components: `receivers`, `processors`, `exporters`, `connectors`, `extensions`.

use std::collections::BTreeMap;

use super::{
    cursor::Cursor,
    foreign_names, id,
    report::{DecodeReport, new_finding},
    scalar,
};
use crate::{
    ComponentId,
    component::ComponentKind,
    problem::label,
    yaml::{NodeValue, TextSpan},
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
pub(crate) fn section<T: ComponentKind>(at: &Cursor<'_>, report: &DecodeReport) -> DecodedSection<T> {
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
            refuse(format!("the {} `{id}` is already defined", T::NOUN), Some("give one of them another name".into()));
            continue;
        }
        match T::ROWS.iter().find(|row| row.component_type.names.contains(&id.kind())) {
            Some(row) => {
                if let Some(component) = (row.decode)(&at.entry(entry), report) {
                    section.components.insert(id, component);
                }
            }
            None => {
                let (message, help) = unknown::<T>(id.kind(), report);
                refuse(message, help);
            }
        }
    }
    section
}

fn unknown<T: ComponentKind>(name: &str, report: &DecodeReport) -> (String, Option<String>) {
    let known: Vec<&str> = T::ROWS.iter().flat_map(|row| row.component_type.names).copied().collect();
    let noun = T::NOUN;
    let all = format!("known {}", T::SECTION);
    if let Some(instead) = foreign_names::replacement_for(T::SECTION, name) {
        return (format!("the {noun} `{name}` was removed from the Collector"), Some(instead.to_owned()));
    }
    if T::FOREIGN_NAMES.split_whitespace().any(|other| other == name) {
        let message = format!("the {noun} `{name}` is not supported by this build");
        return (message, report.suggest("", &known, &all));
    }
    (format!("unknown {noun} `{}`", label(name)), report.suggest(name, &known, &all))
}
