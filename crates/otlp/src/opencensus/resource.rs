//! Translates node and resource to the attributes of an OTLP resource.

use std::collections::BTreeMap;

use super::attributes::{OpenCensusValue, content, entry, number, pair};
use super::opencensus_fields::{oc_node, oc_resource, oc_time};
use super::translation_output::TranslationOutput;
use crate::field_numbers::resource;
use crate::wire::WireFields;

/// The names of languages, by their number.
const LANGUAGES: [&str; 11] = ["", "cpp", "dotnet", "erlang", "go", "java", "nodejs", "php", "python", "ruby", "webjs"];

/// The attributes of a node, read once however many resources they are written to.
pub(super) struct NodeAttributes<'a> {
    attributes: AttributeMap<'a>,
    started: Option<String>,
}

impl<'a> NodeAttributes<'a> {
    pub(super) fn new(node: Option<&'a [u8]>) -> Self {
        let mut attributes = BTreeMap::new();
        if let Some(node) = node {
            add_node_attributes(node, &mut attributes);
        }
        let started = node.and_then(|node| content(node, oc_node::IDENTIFIER)).and_then(process_start_time);
        Self { attributes, started }
    }

    /// The content of an OTLP resource. The fields of a node take precedence over its attributes, and those
    /// over the labels of the resource. The time is linear in the size of the resource and of the output.
    pub(super) fn encode(&self, resource: Option<&[u8]>) -> Vec<u8> {
        let mut attributes = BTreeMap::new();
        if let Some(resource) = resource {
            add_resource_labels(resource, &mut attributes);
        }
        attributes.extend(self.attributes.iter().map(|(key, value)| (*key, *value)));
        if let Some(started) = &self.started {
            attributes.insert(&b"opencensus.starttime"[..], OpenCensusValue::String(started.as_bytes()));
        }
        if let Some(kind) =
            resource.and_then(|resource| content(resource, oc_resource::TYPE)).filter(|kind| !kind.is_empty())
        {
            attributes.insert(b"opencensus.resourcetype", OpenCensusValue::String(kind));
        }
        // At most a few times the size of the sender, which is bounded.
        let mut always = |_| true;
        let mut out = TranslationOutput::new(&mut always);
        for (key, value) in attributes {
            pair(resource::ATTRIBUTES, key, value, &mut out);
        }
        out.finish()
    }
}

type AttributeMap<'a> = BTreeMap<&'a [u8], OpenCensusValue<'a>>;

fn add_resource_labels<'a>(resource: &'a [u8], attributes: &mut AttributeMap<'a>) {
    for field in WireFields::new(resource).filter(|field| field.is_len(oc_resource::LABELS)) {
        let (key, value) = entry(field.value);
        let key = if key == b"cloud.zone" { b"cloud.availability_zone" } else { key };
        attributes.insert(key, OpenCensusValue::String(value));
    }
}

fn add_node_attributes<'a>(node: &'a [u8], attributes: &mut AttributeMap<'a>) {
    for field in WireFields::new(node).filter(|field| field.is_len(oc_node::ATTRIBUTES)) {
        let (key, value) = entry(field.value);
        attributes.insert(key, OpenCensusValue::String(value));
    }
    let part = |number| content(node, number).unwrap_or_default();
    let identifier = part(oc_node::IDENTIFIER);
    let library = part(oc_node::LIBRARY);
    let service = part(oc_node::SERVICE);
    for (key, message, field) in [
        ("service.name", service, oc_node::SERVICE_NAME),
        ("host.name", identifier, oc_node::HOST_NAME),
        ("telemetry.sdk.version", library, oc_node::CORE_VERSION),
        ("opencensus.exporterversion", library, oc_node::EXPORTER_VERSION),
    ] {
        if let Some(text) = content(message, field).filter(|text| !text.is_empty()) {
            attributes.insert(key.as_bytes(), OpenCensusValue::String(text));
        }
    }
    let pid = number(identifier, oc_node::PID) as u32;
    if pid != 0 {
        attributes.insert(b"process.pid", OpenCensusValue::Int(pid.into()));
    }
    let language = usize::try_from(number(library, oc_node::LANGUAGE)).ok().and_then(|number| LANGUAGES.get(number));
    if let Some(language) = language.filter(|language| !language.is_empty()) {
        attributes.insert(b"telemetry.sdk.language", OpenCensusValue::String(language.as_bytes()));
    }
}

/// The start time of the process in RFC 3339. `None` for a year without four digits.
fn process_start_time(identifier: &[u8]) -> Option<String> {
    let timestamp = content(identifier, oc_node::STARTED)?;
    let seconds = number(timestamp, oc_time::SECONDS) as i64;
    let nanoseconds = number(timestamp, oc_time::NANOSECONDS) as i32;
    super::time::rfc3339(seconds, u32::try_from(nanoseconds).ok()?)
}
