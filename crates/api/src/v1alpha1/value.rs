//! Values that are given in a resource, or in a Secret or a ConfigMap.

use std::fmt;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A value that is given in this resource, or in a Secret or a ConfigMap.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.value) != has(self.valueFrom)", "set either `value` or `valueFrom`"))]
pub struct ValueType {
    /// The value. Everyone who can read this resource can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 131072))]
    pub value: Option<String>,
    /// Source of the value: a Secret or a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ValueFrom>,
}

/// Source of a value: a Secret or a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.secretKeyRef) != has(self.configMapKeyRef)",
    "set either `secretKeyRef` or `configMapKeyRef`"
))]
pub struct ValueFrom {
    /// Key of a Secret that holds the value. A user who references a Secret must be allowed to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// Key of a ConfigMap that holds the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
}

/// Key of a Secret or a ConfigMap. When the value changes, the collectors use the new value without a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the Secret or ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Secret or ConfigMap.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Key in `data` of the Secret or ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

impl ValueType {
    /// A text that stands in the resource.
    pub fn inline(text: impl Into<String>) -> Self {
        Self { value: Some(text.into()), value_from: None }
    }

    /// A text that stands in a Secret.
    pub fn secret(namespace: &str, name: &str, key: &str) -> Self {
        let reference = KeyRef { name: name.into(), namespace: namespace.into(), key: key.into() };
        Self { value: None, value_from: Some(ValueFrom { secret_key_ref: Some(reference), config_map_key_ref: None }) }
    }

    /// A text that stands in a ConfigMap.
    pub fn config_map(namespace: &str, name: &str, key: &str) -> Self {
        let reference = KeyRef { name: name.into(), namespace: namespace.into(), key: key.into() };
        Self { value: None, value_from: Some(ValueFrom { secret_key_ref: None, config_map_key_ref: Some(reference) }) }
    }
}

/// Does not show a text that stands here: it may be a password.
impl fmt::Debug for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_ref().map(|_| "***");
        f.debug_struct("ValueType").field("value", &value).field("value_from", &self.value_from).finish()
    }
}

/// A time as Go and the collector write it.
pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "pattern": r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$",
    })
}
