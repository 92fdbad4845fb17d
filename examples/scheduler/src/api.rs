//! The custom resource: what somebody wants of a scheduler, and what became of it.
//!
//! Two write its status: the operator all but `running`, the scheduler only that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Specification of a scheduler and its plugins.
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
    /// The `spec.schedulerName` of its pods. Defaults to the name of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub scheduler_name: Option<String>,
    /// Image of the scheduler. Defaults to the operator's --image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image: Option<String>,
    /// Filter plugins, in the order in which they run.
    #[serde(default)]
    #[schemars(length(max = 16), inner(length(max = 63)))]
    pub filters: Vec<String>,
    /// Score plugins, which rank the nodes that pass all filters.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub scores: Vec<ScorePlugin>,
    /// Delay of the next attempt for a pod that is unschedulable.
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
    /// Name of the plugin.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Factor for the points of the plugin.
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

/// Exponential backoff, which doubles after each failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackoffSpec {
    /// Delay after the first attempt, in seconds.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 3600))]
    pub initial_seconds: i64,
    /// Maximum delay, in seconds.
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

/// Observed state of the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerStatus {
    /// Generation of the specification that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: the specification is valid. `Ready`: the scheduler uses the specification.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Revision of the configuration that the operator wrote last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Latest configuration with which the operator scheduled a test pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<ProbedConfiguration>,
    /// Status that the scheduler reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningScheduler>,
}

/// A configuration that gave a pod a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbedConfiguration {
    /// Revision of the configuration.
    pub revision: String,
    /// Node of the test pod.
    pub node: String,
}

/// Status that the scheduler reports.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningScheduler {
    /// Revision of the active configuration, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Name of the scheduler's pod.
    pub pod: String,
    /// Time at which this configuration became active.
    pub since: Time,
    /// Configuration that the scheduler refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedConfiguration>,
}

/// A configuration that the scheduler does not take.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedConfiguration {
    /// Revision of the refused configuration.
    pub revision: String,
    /// Reason of the refusal.
    pub reason: String,
}

impl Scheduler {
    /// The name by which pods select the scheduler.
    pub fn scheduler_name(&self) -> String {
        self.spec.scheduler_name.clone().unwrap_or_else(|| self.name_any())
    }
}
