//! A record as operators see it.

use std::collections::BTreeMap;

use kubewake_config::file_log::{TextTemplate, template::TemplatePart};
use kubewake_log_lines::LinePosition;

use crate::{
    evaluate::{Operand, evaluate},
    operators::RecordError,
    value::{LogMap, LogValue, map_bytes},
};

/// A record.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LogEntry {
    /// Where the first line of the record begins. Of records that were joined it is that of the first one.
    pub start: LinePosition,
    /// When it happened, in nanoseconds since 1970; 0 if that is not known.
    pub timestamp: u64,
    /// When it was read, in nanoseconds since 1970.
    pub observed: u64,
    /// From 1 to 24; 0 if it is not known.
    pub severity_number: u8,
    pub severity_text: Vec<u8>,
    pub trace_id: Option<[u8; 16]>,
    pub span_id: Option<[u8; 8]>,
    pub trace_flags: Option<u8>,
    /// The name of the scope.
    pub scope_name: Vec<u8>,
    pub body: LogValue,
    pub attributes: LogMap,
    pub resource: LogMap,
}

impl LogEntry {
    /// A record with a body and nothing else.
    pub fn new(body: LogValue) -> Self {
        Self { body, ..Self::default() }
    }

    /// The bytes that it holds, about.
    pub(crate) fn held_bytes(&self) -> usize {
        let texts = self.severity_text.len() + self.scope_name.len();
        size_of::<Self>() + texts + self.body.held_bytes() + map_bytes(&self.attributes) + map_bytes(&self.resource)
    }
}

/// `attributes` and `resource` of the receiver, which every record gets before its operators.
#[derive(Clone, Debug, Default)]
pub struct EntryTemplate {
    attributes: Vec<(String, TextTemplate)>,
    resource: Vec<(String, TextTemplate)>,
}

impl EntryTemplate {
    pub fn new(attributes: &BTreeMap<String, TextTemplate>, resource: &BTreeMap<String, TextTemplate>) -> Self {
        let list =
            |map: &BTreeMap<String, TextTemplate>| map.iter().map(|(key, text)| (key.clone(), text.clone())).collect();
        Self { attributes: list(attributes), resource: list(resource) }
    }

    /// Whether no record gets anything.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.resource.is_empty()
    }

    /// Whether all records get the same.
    pub fn is_constant(&self) -> bool {
        self.attributes.iter().chain(&self.resource).all(|(_, text)| text.as_text().is_some())
    }

    /// Adds the attributes and the resource.
    ///
    /// # Errors
    ///
    /// If the expression of one of them has no value for this record. The others are there nevertheless.
    pub fn apply(&self, entry: &mut LogEntry) -> Result<(), RecordError> {
        let attributes = set_templates(&self.attributes, entry, false);
        let resource = set_templates(&self.resource, entry, true);
        attributes.and(resource)
    }
}

/// Sets keys of the attributes or of the resource to texts.
pub(crate) fn set_templates(
    templates: &[(String, TextTemplate)],
    entry: &mut LogEntry,
    of_resource: bool,
) -> Result<(), RecordError> {
    let mut result = Ok(());
    for (key, template) in templates {
        match render(template, entry) {
            Ok(text) => {
                let map = if of_resource { &mut entry.resource } else { &mut entry.attributes };
                map.insert(key.clone(), LogValue::Text(text));
            }
            Err(error) => result = Err(error),
        }
    }
    result
}

fn render(template: &TextTemplate, entry: &LogEntry) -> Result<Vec<u8>, RecordError> {
    let mut text = Vec::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(part) => text.extend_from_slice(part.as_bytes()),
            TemplatePart::Expression(expression) => match evaluate(expression.root(), entry)? {
                Operand::Text(part) => text.extend_from_slice(&part),
                other => {
                    return Err(RecordError::new(format!("an expression gives {} and not a text", other.type_name())));
                }
            },
        }
    }
    Ok(text)
}
