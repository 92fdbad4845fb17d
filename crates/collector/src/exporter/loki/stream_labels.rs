//! The tenant and the labels of a record.

use kubewake_config::model::{LOKI_MAX_TENANT_BYTES, LokiExporter, NamePiece, NameTemplate, is_tenant_character};

use crate::{
    core::RejectReason,
    exporter::name_resolver::{DistinctNames, MissingAttribute, NameResolver, NameRules, NameSubject},
};

/// The longest value of a label that Loki accepts by default.
const MAX_LABEL_VALUE_BYTES: usize = 2048;

const TENANT_RULES: NameRules =
    NameRules { sanitize: |c| if is_tenant_character(c) { c } else { '_' }, max_value_bytes: LOKI_MAX_TENANT_BYTES };

const LABEL_RULES: NameRules =
    NameRules { sanitize: |c| if c.is_control() { '_' } else { c }, max_value_bytes: MAX_LABEL_VALUE_BYTES };

/// The label of a record that has no other one, as Loki names it: it refuses streams without labels.
const FALLBACK_LABELS: &str = "{service_name=\"unknown_service\"}";

/// Decides on the tenant and the labels of records.
pub(super) struct StreamLabels {
    tenant: Option<NameResolver>,
    tenants: DistinctNames,
    labels: Vec<Label>,
    streams: DistinctNames,
    /// The labels with the same value for all records, for records whose own would be too many.
    fixed: String,
}

struct Label {
    name: String,
    value: NameResolver,
    /// The attribute whose value is the whole label.
    attribute: Option<String>,
}

/// The tenant and labels of a record.
pub(super) struct StreamNames {
    pub(super) tenant: Option<String>,
    pub(super) labels: String,
    /// Whether they are the labels that the settings ask for, and not those of records whose own would be too many.
    pub(super) is_complete: bool,
}

impl StreamLabels {
    pub(super) fn new(settings: &LokiExporter) -> Self {
        let allowed = &settings.allow_record_attributes;
        let label = |(name, value): &(String, NameTemplate)| Label {
            name: name.clone(),
            attribute: single_attribute(value),
            value: NameResolver::new(value.clone(), allowed, LABEL_RULES),
        };
        let fixed = settings.labels.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_text()?)));
        Self {
            tenant: settings.tenant.clone().map(|tenant| NameResolver::new(tenant, allowed, TENANT_RULES)),
            tenants: DistinctNames::new(settings.max_tenants as usize),
            labels: settings.labels.iter().map(label).collect(),
            streams: DistinctNames::new(settings.max_streams as usize),
            fixed: label_text(fixed),
        }
    }

    /// Whether records of one resource may have different tenants or labels.
    pub(super) fn depend_on_record(&self) -> bool {
        let mut resolvers = self.tenant.iter().chain(self.labels.iter().map(|label| &label.value));
        resolvers.any(NameResolver::depends_on_record)
    }

    /// Whether the value of this attribute of a resource is a label, under any name.
    pub(super) fn has_attribute(&self, key: &[u8]) -> bool {
        self.labels.iter().any(|label| label.attribute.as_ref().is_some_and(|attribute| attribute.as_bytes() == key))
    }

    /// Whether there is a label of this name.
    pub(super) fn has_label(&self, name: &[u8]) -> bool {
        self.labels.iter().any(|label| label.name.as_bytes() == name)
    }

    /// The tenant and labels of a record, or why it cannot have them.
    pub(super) fn resolve(&self, subject: &NameSubject<'_>) -> Result<StreamNames, RejectReason> {
        let tenant = self.resolve_tenant(subject)?;
        let mut values = String::new();
        let mut ends = Vec::with_capacity(self.labels.len());
        for label in &self.labels {
            // A label whose attribute is missing is left out.
            let _: Result<(), MissingAttribute> = label.value.resolve(subject, &mut values);
            ends.push(values.len());
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let pairs = self.labels.iter().zip(starts.zip(ends.iter().copied()));
        let labels =
            label_text(pairs.filter_map(|(label, (start, end))| Some((&*label.name, values.get(start..end)?))));
        let is_complete = labels == self.fixed || self.admit(tenant.as_deref(), &labels);
        let labels = if is_complete { labels } else { self.fixed.clone() };
        Ok(StreamNames { tenant, labels, is_complete })
    }

    fn admit(&self, tenant: Option<&str>, labels: &str) -> bool {
        match tenant {
            Some(tenant) => self.streams.admit(format!("{tenant}{labels}").as_bytes()),
            None => self.streams.admit(labels.as_bytes()),
        }
    }

    fn resolve_tenant(&self, subject: &NameSubject<'_>) -> Result<Option<String>, RejectReason> {
        let Some(resolver) = &self.tenant else { return Ok(None) };
        let mut tenant = String::new();
        resolver.resolve(subject, &mut tenant).map_err(|MissingAttribute| RejectReason::Target)?;
        if tenant.is_empty() || tenant.len() > LOKI_MAX_TENANT_BYTES || matches!(&*tenant, "." | "..") {
            return Err(RejectReason::Target);
        }
        if self.tenants.admit(tenant.as_bytes()) { Ok(Some(tenant)) } else { Err(RejectReason::Cardinality) }
    }
}

/// The attribute that a template consists of.
fn single_attribute(template: &NameTemplate) -> Option<String> {
    match template.pieces() {
        [NamePiece::Attribute { key, default: None }] => Some(key.clone()),
        _ => None,
    }
}

/// `{a="b", c="d"}`, without the labels that are empty.
fn label_text<'l>(labels: impl Iterator<Item = (&'l str, &'l str)>) -> String {
    let mut text = String::new();
    for (name, value) in labels.filter(|(_, value)| !value.is_empty()) {
        text.push_str(if text.is_empty() { "{" } else { ", " });
        text.push_str(name);
        text.push_str("=\"");
        for character in value.chars() {
            if matches!(character, '"' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text.push('"');
    }
    if text.is_empty() {
        return FALLBACK_LABELS.to_owned();
    }
    text.push('}');
    text
}
