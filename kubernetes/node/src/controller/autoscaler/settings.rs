//! The settings of autoscalers.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerSpec};
use kubewake_apiserver::schema::quantity::Quantity;

use super::replicas::CalculationRules;

/// The settings of autoscalers, with kube-controller-manager's defaults.
#[derive(Clone, Copy, Debug)]
pub struct AutoscalerSettings {
    /// The interval between syncs of each autoscaler.
    pub period: Duration,
    /// The relative deviation of the usage from its target that changes nothing.
    pub tolerance: f64,
    /// The time for which fewer replicas must have been enough before the number is reduced.
    pub downscale_stabilization: Duration,
    /// The time after the start of a pod in which its cpu usage counts only if the pod is ready.
    pub cpu_initialization: Duration,
    /// The time after the start of a pod within which a pod that becomes unready counts as never ready.
    pub initial_readiness_delay: Duration,
}

impl Default for AutoscalerSettings {
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

impl AutoscalerSettings {
    /// The rules for an autoscaler, which may have a tolerance of its own.
    pub(super) fn calculation_rules(&self, spec: &HorizontalPodAutoscalerSpec, now: Timestamp) -> CalculationRules {
        let behavior = spec.behavior.as_ref();
        let of = |rules: Option<&HPAScalingRules>| {
            let tolerance = rules.and_then(|rules| rules.tolerance.as_ref());
            let tolerance = tolerance.and_then(|tolerance| Quantity::parse(&tolerance.0).ok());
            tolerance.map_or(self.tolerance, |tolerance| tolerance.units(-9) as f64 / 1e9)
        };
        let down = of(behavior.and_then(|behavior| behavior.scale_down.as_ref()));
        let up = of(behavior.and_then(|behavior| behavior.scale_up.as_ref()));
        CalculationRules {
            tolerated_ratios: (1.0 - down, 1.0 + up),
            cpu_initialization: self.cpu_initialization,
            readiness_delay: self.initial_readiness_delay,
            now,
        }
    }
}
