//! How autoscalers work, and how long they wait.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerSpec};
use kubewake_apiserver::schema::quantity::Quantity;

use super::replicas::Rules;

/// How autoscalers work, with kube-controller-manager's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often each is looked at.
    pub period: Duration,
    /// How far use may be from its goal, as a share of it, before anything changes.
    pub tolerance: f64,
    /// How long fewer replicas must have been enough before there are fewer.
    pub downscale_stabilization: Duration,
    /// How long after its start a pod's use of cpu counts only if it is ready.
    pub cpu_initialization: Duration,
    /// How long after its start a pod that becomes unready is taken to never have been ready.
    pub initial_readiness_delay: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(15),
            tolerance: 0.1,
            downscale_stabilization: Duration::from_secs(5 * 60),
            cpu_initialization: Duration::from_secs(5 * 60),
            initial_readiness_delay: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// As they hold for an autoscaler that may have its own tolerance.
    pub(super) fn rules(&self, spec: &HorizontalPodAutoscalerSpec, now: Timestamp) -> Rules {
        let behavior = spec.behavior.as_ref();
        let of = |rules: Option<&HPAScalingRules>| {
            let tolerance = rules.and_then(|rules| rules.tolerance.as_ref());
            let tolerance = tolerance.and_then(|tolerance| Quantity::parse(&tolerance.0).ok());
            tolerance.map_or(self.tolerance, |tolerance| tolerance.units(-9) as f64 / 1e9)
        };
        let down = of(behavior.and_then(|behavior| behavior.scale_down.as_ref()));
        let up = of(behavior.and_then(|behavior| behavior.scale_up.as_ref()));
        Rules {
            tolerated: (1.0 - down, 1.0 + up),
            cpu_initialization: self.cpu_initialization,
            readiness_delay: self.initial_readiness_delay,
            now,
        }
    }
}
