//! The custom resources: a Head is made of ChildA objects, and a ChildA of a Deployment.
//!
//! What the schema forbids never reaches a controller. `deploy/crds.yaml` is made from these types; a test sees
//! that it is the same.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The API group of both.
pub const API_GROUP: &str = "demo.kubewake.io";

/// Specification of a Head and its children.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "demo.kubewake.io", version = "v1alpha1", kind = "Head", namespaced)]
#[kube(status = "HeadStatus", derive = "Default", derive = "PartialEq")]
#[kube(doc = "A Head is ready when all its children are.")]
#[kube(
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#
)]
#[kube(
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].reason"}"#
)]
#[kube(printcolumn = r#"{"name": "Children", "type": "integer", "jsonPath": ".status.readyChildren"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct HeadSpec {
    /// Children of the Head. The operator deletes children that are not listed.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub children: Vec<HeadChild>,
}

/// One child of a Head.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeadChild {
    /// Name of the child. The ChildA object has the name `HEAD-NAME`.
    #[schemars(length(min = 1, max = 20), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Specification of the ChildA object.
    pub template: ChildASpec,
}

/// Observed state of a Head object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HeadStatus {
    /// Generation of the specification that this status describes.
    pub observed_generation: Option<i64>,
    /// Number of children that are ready.
    pub ready_children: i32,
    /// The condition `Ready` of the object.
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Specification of a ChildA and its Deployment.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "demo.kubewake.io", version = "v1alpha1", kind = "ChildA", namespaced)]
#[kube(status = "ChildAStatus", derive = "Default", derive = "PartialEq")]
#[kube(doc = "A ChildA is ready when its Deployment is available.")]
#[kube(
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#
)]
#[kube(
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].reason"}"#
)]
#[kube(printcolumn = r#"{"name": "Replicas", "type": "integer", "jsonPath": ".status.readyReplicas"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct ChildASpec {
    /// Number of pods of the Deployment.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 16))]
    pub replicas: i32,
    /// Image of the container in each pod.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// Program of the container. Defaults to the entry point of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub command: Vec<String>,
    /// Arguments of the program in the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub args: Vec<String>,
}

/// Observed state of a ChildA object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChildAStatus {
    /// Generation of the specification that this status describes.
    pub observed_generation: Option<i64>,
    /// Number of pods that are ready.
    pub ready_replicas: i32,
    /// The condition `Ready` of the object.
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

fn one() -> i32 {
    1
}

/// The list of conditions as every kind of Kubernetes has it.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "maxLength": 316},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                "message": {"type": "string", "maxLength": 32768},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            },
        },
    })
}
