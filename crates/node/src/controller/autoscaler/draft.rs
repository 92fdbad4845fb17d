//! The status of an autoscaler while it is being made.

use jiff::Timestamp;
use k8s_openapi::{
    api::autoscaling::v2::{
        HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::Client;

use crate::{controller::status::Update, error::Result, view::View};

/// Begins as the status that there is.
#[derive(Debug)]
pub struct Draft {
    /// As far as it is made.
    pub status: HorizontalPodAutoscalerStatus,
    now: Timestamp,
}

impl Draft {
    /// Of this autoscaler.
    pub fn new(autoscaler: &HorizontalPodAutoscaler, now: Timestamp) -> Self {
        Self { status: autoscaler.status.clone().unwrap_or_default(), now }
    }

    /// Sets a condition. The time is that of the last change between true and false.
    pub fn condition(&mut self, kind: &str, holds: bool, reason: &str, message: impl Into<String>) {
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

    /// How many replicas there are and should be, and what they use.
    pub fn counts(&mut self, current: i32, desired: i32, metrics: Vec<MetricStatus>) {
        // Zero is left out, as Go does.
        self.status.current_replicas = Some(current).filter(|current| *current != 0);
        self.status.desired_replicas = desired;
        self.status.current_metrics = (!metrics.is_empty()).then_some(metrics);
    }

    /// The number of replicas was changed now.
    pub fn rescaled(&mut self) {
        self.status.last_scale_time = Some(Time(self.now));
    }

    /// Writes it, if it differs from what there is.
    pub async fn write(
        mut self,
        client: &Client,
        view: &View<HorizontalPodAutoscaler>,
        autoscaler: &HorizontalPodAutoscaler,
    ) -> Result<()> {
        self.status.observed_generation = autoscaler.metadata.generation;
        Update::between(autoscaler.status.as_ref(), &self.status).write(client, view, autoscaler).await
    }
}
