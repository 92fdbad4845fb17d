//! Schemas for tests, from what a CRD would say.

use std::sync::Arc;

use serde_json::Value;

use super::{ListType, MapType, Node, Scalar, Schema, Shape};

/// The tree of a small openAPIV3Schema.
pub(super) fn schema(crd: &Value) -> Schema {
    let flag = |name: &str| crd[name] == true;
    let open = flag("x-kubernetes-preserve-unknown-fields");
    let node = |of: &Value| Node::from(schema(of));
    let shape = match crd["type"].as_str() {
        Some("string") => Shape::Scalar(Scalar::String),
        Some("integer") => Shape::Scalar(Scalar::Integer),
        Some("boolean") => Shape::Scalar(Scalar::Boolean),
        Some("array") => Shape::List { items: node(&crd["items"]), list: ListType::Atomic },
        Some("object") if crd.get("additionalProperties").is_some() => {
            Shape::Map { values: node(&crd["additionalProperties"]), map: MapType::Granular }
        }
        Some("object") => {
            let properties = crd["properties"].as_object().into_iter().flatten();
            let fields = properties.map(|(name, of)| (Arc::from(name.as_str()), node(of))).collect();
            let embedded = flag("x-kubernetes-embedded-resource");
            Shape::Object { fields, open, embedded, map: MapType::Granular }
        }
        _ => Shape::Any,
    };
    Schema { shape, nullable: flag("nullable"), default: crd.get("default").cloned(), ..Schema::default() }
}

/// The schema of a custom resource with this `spec`.
pub(super) fn widget(spec: Value) -> Schema {
    schema(&serde_json::json!({"type": "object", "properties": {"spec": spec}}))
}
