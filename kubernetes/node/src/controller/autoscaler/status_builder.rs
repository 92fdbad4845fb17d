//! Builds the status of an autoscaler.

use jiff::Timestamp;
use k8s_openapi::{
    api::autoscaling::v2::{
        HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::Client;

use crate::{controller::status::StatusPatch, error::Result, informer::SharedInformer};

/// Starts with the existing status.
#[derive(Debug)]
pub struct AutoscalerStatusBuilder {
    /// The status so far.
    pub status: HorizontalPodAutoscalerStatus,
    now: Timestamp,
}

impl AutoscalerStatusBuilder {
    pub fn new(autoscaler: &HorizontalPodAutoscaler, now: Timestamp) -> Self {
        Self { status: autoscaler.status.clone().unwrap_or_default(), now }
    }

    /// Sets a condition. Its transition time is that of the last change between true and false.
    pub fn set_condition(&mut self, kind: &str, holds: bool, reason: &str, message: impl Into<String>) {
        let conditions = self.status.conditions.get_or_insert_default();
        let status = if holds { "True" } else { "False" };
        let held = conditions.iter_mut().find(|condition| condition.type_ == kind);
        let changed = held.as_ref().is_none_or(|held| held.status != status);
        let since = held.as_ref().and_then(|held| held.last_transition_time.clone()).filter(|_| !changed);
        let condition = HorizontalPodAutoscalerCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.into()),
            last_transition_time: Some(since.unwrap_or(Time(self.now))),
        };
        match held {
            Some(held) => *held = condition,
            None => conditions.push(condition),
        }
    }

    /// Sets the current and the desired number of replicas, and the current metrics.
    pub fn set_counts(&mut self, current: i32, desired: i32, metrics: Vec<MetricStatus>) {
        // Zero is omitted, as in Go.
        self.status.current_replicas = Some(current).filter(|current| *current != 0);
        self.status.desired_replicas = desired;
        self.status.current_metrics = (!metrics.is_empty()).then_some(metrics);
    }

    /// Sets the time of the last scaling to now.
    pub fn set_rescaled_now(&mut self) {
        self.status.last_scale_time = Some(Time(self.now));
    }

    /// Writes the status if it differs from the existing one.
    pub async fn write_if_changed(
        mut self,
        client: &Client,
        view: &SharedInformer<HorizontalPodAutoscaler>,
        autoscaler: &HorizontalPodAutoscaler,
    ) -> Result<()> {
        self.status.observed_generation = autoscaler.metadata.generation;
        StatusPatch::between(autoscaler.status.as_ref(), &self.status).write(client, view, autoscaler).await
    }
}
