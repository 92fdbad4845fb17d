//! The custom resource: what somebody wants of a scheduler, and what became of it.
//!
//! Two write its status: the operator all but `running`, the scheduler only that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scheduler and the plugins that it decides by.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "demo.kubewake.io",
    version = "v1alpha1",
    kind = "Scheduler",
    namespaced,
    status = "SchedulerStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Accepted","type":"string","jsonPath":".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name":"Revision","type":"string","jsonPath":".status.revision"}"#,
    printcolumn = r#"{"name":"Running","type":"string","jsonPath":".status.running.revision"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerSpec {
    /// The name that pods ask for it by, in their `spec.schedulerName`. The name of this object, unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub scheduler_name: Option<String>,
    /// The image of the scheduler. The operator's choice, unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image: Option<String>,
    /// The plugins that a node must pass, in this order.
    #[serde(default)]
    #[schemars(length(max = 16), inner(length(max = 63)))]
    pub filters: Vec<String>,
    /// The plugins that give points to the nodes that passed.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub scores: Vec<ScorePlugin>,
    /// How long a pod that fits nowhere waits at least until it is tried again.
    #[serde(default)]
    pub backoff: BackoffSpec,
    /// Whether each configuration is tried with a small pod before it counts as ready. The pod is deleted once
    /// it has a node.
    #[serde(default)]
    pub probe: bool,
}

/// A plugin that gives each node 0 to 100 points.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScorePlugin {
    /// Which one.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Its points are multiplied by this.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: i64,
    /// For `NodeLabel` only: the label that a node should have, `key` or `key=value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 380))]
    pub label: Option<String>,
}

fn one() -> i64 {
    1
}

/// Twice as long after each attempt that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackoffSpec {
    /// After the first attempt.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 3600))]
    pub initial_seconds: i64,
    /// After many.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 3600))]
    pub max_seconds: i64,
}

fn ten() -> i64 {
    10
}

impl Default for BackoffSpec {
    /// kube-scheduler's.
    fn default() -> Self {
        Self { initial_seconds: one(), max_seconds: ten() }
    }
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerStatus {
    /// The generation that the rest is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: the specification is a good one. `Ready`: the scheduler decides by it.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The configuration that the operator gave the scheduler last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The configuration that was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<ProbedConfiguration>,
    /// What the scheduler says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningScheduler>,
}

/// A configuration that gave a pod a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbedConfiguration {
    /// Which one.
    pub revision: String,
    /// Which node.
    pub node: String,
}

/// What the scheduler says of itself.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningScheduler {
    /// The configuration that it decides by; none before it took one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The pod that it is.
    pub pod: String,
    /// Since when it does.
    pub since: Time,
    /// The configuration that it was given and does not take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedConfiguration>,
}

/// A configuration that the scheduler does not take.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedConfiguration {
    /// Which one.
    pub revision: String,
    /// Why not.
    pub reason: String,
}

impl Scheduler {
    /// The name that pods ask for it by.
    pub fn scheduler_name(&self) -> String {
        self.spec.scheduler_name.clone().unwrap_or_else(|| self.name_any())
    }
}
