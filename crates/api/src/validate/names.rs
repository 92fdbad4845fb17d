//! Templates of names: of tenants, labels, indices and data streams.

use kubewake_config::model::{LOKI_MAX_TENANT_BYTES, NamePiece, NameTemplate, is_index_character, is_tenant_character};

use super::context::ValidationContext;
use crate::{
    ConditionReason,
    destination::{BackendKind, PipelineDestination},
};

/// The schema's limit.
const MAX_TEMPLATE_BYTES: usize = 1024;
/// How Loki spells the names of labels; names that begin with two underscores are its own.
const MAX_LABEL_BYTES: usize = 1024;
const TEMPLATE_HELP: &str = "write attributes as %{k8s.namespace.name} or %{k8s.namespace.name:-default}, dates as \
                             %{+yyyy.MM.dd}, and a percent sign as %%";

/// Checks all templates of a destination, and that no attribute is allowed in vain.
pub(super) fn check_templates(check: &mut ValidationContext<'_>, destination: &PipelineDestination) {
    let place = destination.path();
    let mut given: Vec<(String, &str)> = Vec::new();
    if let BackendKind::Loki { tenant, labels, .. } = &destination.backend {
        given.extend(tenant.iter().map(|tenant| (format!("{place}.tenant"), tenant.as_str())));
        if let Some(tenant) = tenant {
            check_tenant(check, &format!("{place}.tenant"), tenant);
        }
        for (name, value) in labels {
            let path = format!("{place}.labels[{name}]");
            if !is_label_name(name) {
                let message = "is not the name of a label: use letters, digits and `_`, neither a digit nor `__` at the beginning";
                check.refuse(&path, ConditionReason::SettingInvalid, message);
            }
            given.push((path, value));
        }
    }
    if let Some(documents) = destination.backend.documents() {
        if documents.index.is_some() && documents.data_stream.is_some() {
            let message = "set either `index` or `dataStream`";
            check.refuse(&place, ConditionReason::SpecInvalid, message);
        }
        if let Some(index) = &documents.index {
            check_index(check, &format!("{place}.index"), index);
        }
        given.extend(documents.index.iter().map(|index| (format!("{place}.index"), index.as_str())));
        if let Some(stream) = &documents.data_stream {
            for (field, part) in [("dataset", &stream.dataset), ("namespace", &stream.namespace)] {
                let Some(part) = part else { continue };
                let path = format!("{place}.dataStream.{field}");
                check_stream_part(check, &path, part, field == "namespace");
                given.push((path, part));
            }
        }
    }
    let templates: Vec<NameTemplate> = given.iter().filter_map(|(path, text)| template(check, path, text)).collect();
    let allowed = allowed_attributes(destination).iter().enumerate();
    for (index, _) in allowed.filter(|(_, key)| !uses(&templates, key)) {
        let message = "has no effect: no template of the output names this attribute";
        check.warn(format!("{place}.allowRecordAttributes[{index}]"), ConditionReason::SettingInvalid, message);
    }
}

/// Checks the parts of a tenant that are no attributes.
fn check_tenant(check: &mut ValidationContext<'_>, path: &str, tenant: &str) {
    let Ok(template) = NameTemplate::parse(tenant) else { return };
    let is_spelled = fixed_texts(&template).flat_map(str::chars).all(is_tenant_character);
    let is_reserved = matches!(template.as_text(), Some("." | ".."));
    if !is_spelled || is_reserved || template.as_text().is_some_and(|text| text.len() > LOKI_MAX_TENANT_BYTES) {
        let message =
            format!("is not a tenant of Loki: use at most {LOKI_MAX_TENANT_BYTES} letters, digits and ! - _ . * ' ( )");
        check.refuse(path, ConditionReason::SettingInvalid, message);
    }
}

/// The texts of a template that are no attributes and no dates.
fn fixed_texts(template: &NameTemplate) -> impl Iterator<Item = &str> {
    template.pieces().iter().filter_map(|piece| match piece {
        NamePiece::Text(text) | NamePiece::Attribute { default: Some(text), .. } => Some(text.as_str()),
        NamePiece::Attribute { .. } | NamePiece::Date(_) => None,
    })
}

/// Checks the parts of an index's name that are no attributes.
fn check_index(check: &mut ValidationContext<'_>, path: &str, index: &str) {
    let Ok(template) = NameTemplate::parse(index) else { return };
    let is_spelled = fixed_texts(&template).flat_map(str::chars).all(is_index_character);
    let first = template.pieces().first();
    let begins_badly = matches!(first, Some(NamePiece::Text(text)) if text.starts_with(['-', '_', '+', '.']));
    if !is_spelled || begins_badly {
        let message = "is not the name of an index: use lower case, and none of - _ + . at the beginning";
        check.refuse(path, ConditionReason::SettingInvalid, message);
    }
}

/// Checks the parts of a data stream's name that are no attributes.
fn check_stream_part(check: &mut ValidationContext<'_>, path: &str, part: &str, allows_hyphen: bool) {
    let Ok(template) = NameTemplate::parse(part) else { return };
    let is_allowed = |c: char| is_index_character(c) && (allows_hyphen || c != '-');
    if !fixed_texts(&template).flat_map(str::chars).all(is_allowed) {
        let message = "is not a part of the name of a data stream: use lower case, and no `-` in the dataset";
        check.refuse(path, ConditionReason::SettingInvalid, message);
    }
    if template.has_date() {
        let message = "has a date: the backend rolls data streams over by itself";
        check.refuse(path, ConditionReason::SettingInvalid, message);
    }
}

fn template(check: &mut ValidationContext<'_>, path: &str, text: &str) -> Option<NameTemplate> {
    if text.is_empty() || text.len() > MAX_TEMPLATE_BYTES {
        check.refuse(path, ConditionReason::SettingInvalid, format!("must have 1 to {MAX_TEMPLATE_BYTES} bytes"));
        return None;
    }
    match NameTemplate::parse(text) {
        Ok(template) => Some(template),
        Err(error) => {
            let message = format!("is not a template: {error}; {TEMPLATE_HELP}");
            check.refuse(path, ConditionReason::SettingInvalid, message);
            None
        }
    }
}

/// Attributes of records that the templates of a destination may take.
fn allowed_attributes(destination: &PipelineDestination) -> &[String] {
    match &destination.backend {
        BackendKind::Loki { allow_record_attributes, .. } => allow_record_attributes,
        backend => {
            backend.documents().map(|documents| documents.allow_record_attributes.as_slice()).unwrap_or_default()
        }
    }
}

fn uses(templates: &[NameTemplate], key: &str) -> bool {
    templates.iter().flat_map(NameTemplate::attribute_keys).any(|used| used == key)
}

fn is_label_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_spelled = name.chars().all(inner) && !name.starts_with(|c: char| c.is_ascii_digit());
    !name.is_empty() && name.len() <= MAX_LABEL_BYTES && is_spelled && !name.starts_with("__")
}
