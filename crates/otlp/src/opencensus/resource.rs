//! Node and resource, as the attributes of a resource.

use std::collections::BTreeMap;

use super::attributes::{Value, content, entry, number, pair};
use super::fields::{oc_node, oc_resource, oc_time};
use super::out::Out;
use crate::numbers::resource;
use crate::wire::Fields;

/// The names of languages, by their number.
const LANGUAGES: [&str; 11] = ["", "cpp", "dotnet", "erlang", "go", "java", "nodejs", "php", "python", "ruby", "webjs"];

/// The content of an OTLP resource. What a node says by itself stands above its attributes, and those above the labels
/// of the resource.
pub(super) fn encode(node: Option<&[u8]>, resource: Option<&[u8]>) -> Vec<u8> {
    let started = node.and_then(|node| content(node, oc_node::IDENTIFIER)).and_then(started);
    let mut attributes = BTreeMap::new();
    if let Some(resource) = resource {
        labels(resource, &mut attributes);
    }
    if let Some(node) = node {
        describe(node, &mut attributes);
    }
    if let Some(started) = &started {
        attributes.insert(&b"opencensus.starttime"[..], Value::String(started.as_bytes()));
    }
    if let Some(kind) =
        resource.and_then(|resource| content(resource, oc_resource::TYPE)).filter(|kind| !kind.is_empty())
    {
        attributes.insert(b"opencensus.resourcetype", Value::String(kind));
    }
    // At most a few times what is in a sender, which is bounded.
    let mut always = |_| true;
    let mut out = Out::new(&mut always);
    for (key, value) in attributes {
        pair(resource::ATTRIBUTES, key, value, &mut out);
    }
    out.finish()
}

type Attributes<'a> = BTreeMap<&'a [u8], Value<'a>>;

fn labels<'a>(resource: &'a [u8], attributes: &mut Attributes<'a>) {
    for field in Fields::new(resource).filter(|field| field.is_len(oc_resource::LABELS)) {
        let (key, value) = entry(field.value);
        let key = if key == b"cloud.zone" { b"cloud.availability_zone" } else { key };
        attributes.insert(key, Value::String(value));
    }
}

fn describe<'a>(node: &'a [u8], attributes: &mut Attributes<'a>) {
    for field in Fields::new(node).filter(|field| field.is_len(oc_node::ATTRIBUTES)) {
        let (key, value) = entry(field.value);
        attributes.insert(key, Value::String(value));
    }
    let part = |number| content(node, number).unwrap_or_default();
    let (identifier, library, service) = (part(oc_node::IDENTIFIER), part(oc_node::LIBRARY), part(oc_node::SERVICE));
    for (key, message, field) in [
        ("service.name", service, oc_node::SERVICE_NAME),
        ("host.name", identifier, oc_node::HOST_NAME),
        ("telemetry.sdk.version", library, oc_node::CORE_VERSION),
        ("opencensus.exporterversion", library, oc_node::EXPORTER_VERSION),
    ] {
        if let Some(text) = content(message, field).filter(|text| !text.is_empty()) {
            attributes.insert(key.as_bytes(), Value::String(text));
        }
    }
    let pid = number(identifier, oc_node::PID) as u32;
    if pid != 0 {
        attributes.insert(b"process.pid", Value::Int(pid.into()));
    }
    let language = usize::try_from(number(library, oc_node::LANGUAGE)).ok().and_then(|number| LANGUAGES.get(number));
    if let Some(language) = language.filter(|language| !language.is_empty()) {
        attributes.insert(b"telemetry.sdk.language", Value::String(language.as_bytes()));
    }
}

/// When the process began, as RFC 3339 writes it. What has no year of four digits is not told.
fn started(identifier: &[u8]) -> Option<String> {
    let timestamp = content(identifier, oc_node::STARTED)?;
    let seconds = number(timestamp, oc_time::SECONDS) as i64;
    let nanoseconds = number(timestamp, oc_time::NANOSECONDS) as i32;
    super::time::rfc3339(seconds, u32::try_from(nanoseconds).ok()?)
}
