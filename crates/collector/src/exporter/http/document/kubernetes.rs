//! The members `kubernetes` and `resource`, from the attributes of a resource.

use kubewake_config::model::Dedot;
use kubewake_otlp::view::{AttributesView, KeyValue, Resource};

use crate::exporter::record_json::{FieldList, FieldValue, JsonOutput};

/// Attributes of the resource, and what they are called in `kubernetes`, as in Fluent Bit.
const POD_MEMBERS: [(&[u8], &[u8]); 7] = [
    (b"k8s.namespace.name", b"namespace_name"),
    (b"k8s.pod.name", b"pod_name"),
    (b"k8s.pod.uid", b"pod_id"),
    (b"k8s.container.name", b"container_name"),
    (b"k8s.node.name", b"host"),
    (b"container.id", b"docker_id"),
    (b"container.image.name", b"container_image"),
];

/// What attributes with labels and annotations begin with.
const LABEL_PREFIXES: [&[u8]; 2] = [b"k8s.pod.label.", b"k8s.pod.labels."];
const ANNOTATION_PREFIXES: [&[u8]; 2] = [b"k8s.pod.annotation.", b"k8s.pod.annotations."];

/// Whether anything is known about a pod.
pub(super) fn has_pod(resource: &Resource<'_>) -> bool {
    resource.attributes().iter().any(|pair| is_of_pod(pair.key()))
}

/// Whether the resource has other attributes.
pub(super) fn has_others(resource: &Resource<'_>) -> bool {
    resource.attributes().iter().any(|pair| !is_of_pod(pair.key()))
}

fn is_of_pod(key: &[u8]) -> bool {
    POD_MEMBERS.iter().any(|(attribute, _)| *attribute == key)
        || LABEL_PREFIXES.iter().chain(&ANNOTATION_PREFIXES).any(|prefix| key.starts_with(prefix))
}

/// Writes the attributes of a resource that are not about its pod.
pub(super) fn write_others(resource: &Resource<'_>, dedot: Dedot, out: &mut JsonOutput<'_>) {
    FieldList::write_object(out, dedot, 1, |fields| {
        fields.attributes(resource.attributes().iter().filter(|pair| !is_of_pod(pair.key())));
    });
}

/// Writes what is known about the pod.
pub(super) fn write_pod(resource: &Resource<'_>, dedot: Dedot, out: &mut JsonOutput<'_>) {
    let attributes = resource.attributes();
    let labels = |out: &mut JsonOutput<'_>| write_map(attributes, &LABEL_PREFIXES, dedot, out);
    let annotations = |out: &mut JsonOutput<'_>| write_map(attributes, &ANNOTATION_PREFIXES, dedot, out);
    FieldList::write_object(out, dedot, 1, |fields| {
        for pair in attributes {
            if let Some((_, name)) = POD_MEMBERS.iter().find(|(attribute, _)| *attribute == pair.key()) {
                fields.attribute("", name, pair);
            }
        }
        if attributes.iter().any(|pair| label_name(&pair, &LABEL_PREFIXES).is_some()) {
            fields.field("", b"labels", FieldValue::Written(&labels));
        }
        if attributes.iter().any(|pair| label_name(&pair, &ANNOTATION_PREFIXES).is_some()) {
            fields.field("", b"annotations", FieldValue::Written(&annotations));
        }
    });
}

fn label_name<'p>(pair: &KeyValue<'p>, prefixes: &[&[u8]]) -> Option<&'p [u8]> {
    prefixes.iter().find_map(|prefix| pair.key().strip_prefix(*prefix))
}

fn write_map(attributes: AttributesView<'_>, prefixes: &[&[u8]], dedot: Dedot, out: &mut JsonOutput<'_>) {
    FieldList::write_object(out, dedot, 2, |fields| {
        for pair in attributes {
            if let Some(name) = label_name(&pair, prefixes) {
                fields.label(name, pair);
            }
        }
    });
}
