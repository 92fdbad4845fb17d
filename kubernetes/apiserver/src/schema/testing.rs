//! Schemas for tests, from the schemas of CRDs.

use std::sync::Arc;

use serde_json::Value;

use super::{ListType, MapType, ScalarType, Schema, SchemaNode, SchemaShape};

/// The tree of a small `openAPIV3Schema`.
pub(super) fn schema(crd: &Value) -> Schema {
    let flag = |name: &str| crd[name] == true;
    let open = flag("x-kubernetes-preserve-unknown-fields");
    let node = |of: &Value| SchemaNode::from(schema(of));
    let shape = match crd["type"].as_str() {
        Some("string") => SchemaShape::Scalar(ScalarType::String),
        Some("integer") => SchemaShape::Scalar(ScalarType::Integer),
        Some("boolean") => SchemaShape::Scalar(ScalarType::Boolean),
        Some("array") => SchemaShape::List { items: node(&crd["items"]), list: ListType::Atomic },
        Some("object") if crd.get("additionalProperties").is_some() => {
            SchemaShape::Map { values: node(&crd["additionalProperties"]), map: MapType::Granular }
        }
        Some("object") => {
            let properties = crd["properties"].as_object().into_iter().flatten();
            let fields = properties.map(|(name, of)| (Arc::from(name.as_str()), node(of))).collect();
            let embedded = flag("x-kubernetes-embedded-resource");
            SchemaShape::Object { fields, open, embedded, map: MapType::Granular }
        }
        _ => SchemaShape::Any,
    };
    Schema { shape, nullable: flag("nullable"), default: crd.get("default").cloned(), ..Schema::default() }
}

pub(super) fn widget(spec: Value) -> Schema {
    schema(&serde_json::json!({"type": "object", "properties": {"spec": spec}}))
}
