//! Limits for changes of the number of replicas: stabilization windows, and the policies of `behavior`. No I/O,
//! no clock.
//!
//! Without `behavior` the number at most doubles at once (or reaches four), and is reduced only to the highest
//! recommendation of the last minutes.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerBehavior};
use tokio::time::Instant;

/// The reason and the message of a condition.
pub type ConditionText = (&'static str, &'static str);

const RECOMMENDATION_MATCHES: ConditionText = ("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILIZED: ConditionText = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: ConditionText = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const WITHIN_RANGE: ConditionText = ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_MANY: ConditionText = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: ConditionText = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_FAST_UP: ConditionText =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const TOO_FAST_DOWN: ConditionText =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");

/// The limits of the number of replicas.
#[derive(Clone, Copy, Debug)]
pub struct ScalingLimits<'a> {
    pub min: i32,
    pub max: i32,
    /// The current number of replicas.
    pub current: i32,
    pub behavior: Option<&'a HorizontalPodAutoscalerBehavior>,
    /// The stabilization window for scaling down, where `behavior` has none.
    pub down_window: Duration,
}

/// A recommendation after all limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalizedReplicas {
    /// The resulting number of replicas.
    pub replicas: i32,
    /// Reason and message of the condition `AbleToScale`, which is true.
    pub able_to_scale: ConditionText,
    pub limited: bool,
    pub limits: ConditionText,
}

/// Recent recommendations and changes of an autoscaler.
#[derive(Debug, Default)]
pub struct ScalingHistory {
    recommendations: Vec<(Instant, i32)>,
    /// Changes of the number; negative for fewer.
    changes: Vec<(Instant, i32)>,
}

impl ScalingHistory {
    /// Records the initial number of replicas as a recommendation, so that a new autoscaler does not remove any
    /// at once.
    pub fn record_first_replicas(&mut self, current: i32, now: Instant) {
        if self.recommendations.is_empty() {
            self.recommendations.push((now, current));
        }
    }

    /// The number of replicas that results from a recommendation.
    pub fn normalize_replicas(&mut self, wanted: i32, limits: &ScalingLimits<'_>, now: Instant) -> NormalizedReplicas {
        let stable = self.stabilize(wanted, limits, now);
        let able = match () {
            () if stable == wanted => RECOMMENDATION_MATCHES,
            () if limits.behavior.is_some() && wanted >= limits.current => UP_STABILIZED,
            () => DOWN_STABILIZED,
        };
        let (replicas, words) = match limits.behavior {
            Some(behavior) => self.limit_by(behavior, stable, limits, now),
            None => limit_without_behavior(stable, limits),
        };
        NormalizedReplicas { replicas, able_to_scale: able, limited: replicas != stable, limits: words }
    }

    /// Records a change of the number of replicas.
    pub fn record_rescale(&mut self, before: i32, after: i32, limits: &ScalingLimits<'_>, now: Instant) {
        let rules = limits.behavior.into_iter().flat_map(|behavior| [&behavior.scale_up, &behavior.scale_down]);
        let policies = rules.flatten().filter_map(|rules| rules.policies.as_ref()).flatten();
        if let Some(longest) = policies.map(|policy| seconds(policy.period_seconds)).max() {
            self.changes.retain(|(at, _)| now.duration_since(*at) < longest);
            self.changes.push((now, after.saturating_sub(before)));
        }
    }

    /// Applies the stabilization windows, and records the recommendation.
    fn stabilize(&mut self, wanted: i32, limits: &ScalingLimits<'_>, now: Instant) -> i32 {
        let window = |rules: Option<&HPAScalingRules>| rules?.stabilization_window_seconds.map(seconds);
        let up = limits.behavior.and_then(|behavior| window(behavior.scale_up.as_ref())).unwrap_or_default();
        let down =
            limits.behavior.and_then(|behavior| window(behavior.scale_down.as_ref())).unwrap_or(limits.down_window);
        let recent = |window| {
            let recent = self.recommendations.iter().filter(move |(at, _)| now.duration_since(*at) < window);
            recent.map(|(_, replicas)| *replicas).chain([wanted])
        };
        let lowest = recent(up).min().unwrap_or(wanted);
        let highest = recent(down).max().unwrap_or(wanted);
        self.recommendations.retain(|(at, _)| now.duration_since(*at) < up.max(down));
        self.recommendations.push((now, wanted));
        if limits.behavior.is_some() { limits.current.max(lowest).min(highest) } else { highest }
    }

    fn limit_by(
        &self,
        behavior: &HorizontalPodAutoscalerBehavior,
        wanted: i32,
        limits: &ScalingLimits<'_>,
        now: Instant,
    ) -> (i32, ConditionText) {
        let current = limits.current;
        if wanted > current {
            let rate = self.max_by_policies(behavior.scale_up.as_ref(), current, now).max(current);
            let (most, words) = if limits.max > rate { (rate, TOO_FAST_UP) } else { (limits.max, TOO_MANY) };
            if wanted > most { (most, words) } else { (wanted, WITHIN_RANGE) }
        } else if wanted < current {
            let rate = self.min_by_policies(behavior.scale_down.as_ref(), current, now).min(current);
            let (least, words) = if limits.min < rate { (rate, TOO_FAST_DOWN) } else { (limits.min, TOO_FEW) };
            if wanted < least { (least, words) } else { (wanted, WITHIN_RANGE) }
        } else {
            (wanted, WITHIN_RANGE)
        }
    }

    /// The upper limit by the policies.
    fn max_by_policies(&self, rules: Option<&HPAScalingRules>, current: i32, now: Instant) -> i32 {
        let Some(rules) = rules else { return i32::MAX };
        let allowed = rules.policies.iter().flatten().map(|policy| {
            let begun = self.replicas_at_period_start(policy.period_seconds, current, now);
            match policy.type_.as_str() {
                "Pods" => begun.saturating_add(policy.value),
                // Rounded up, or a small number would never grow.
                _ => (f64::from(begun) * (1.0 + f64::from(policy.value) / 100.0)).ceil() as i32,
            }
        });
        match rules.select_policy.as_deref() {
            Some("Disabled") => current,
            Some("Min") => allowed.min().unwrap_or(i32::MAX),
            _ => allowed.max().unwrap_or(i32::MAX),
        }
    }

    /// The lower limit by the policies.
    fn min_by_policies(&self, rules: Option<&HPAScalingRules>, current: i32, now: Instant) -> i32 {
        let Some(rules) = rules else { return 0 };
        let allowed = rules.policies.iter().flatten().map(|policy| {
            let begun = self.replicas_at_period_start(policy.period_seconds, current, now);
            match policy.type_.as_str() {
                "Pods" => begun.saturating_sub(policy.value),
                _ => (f64::from(begun) * (1.0 - f64::from(policy.value) / 100.0)) as i32,
            }
        });
        match rules.select_policy.as_deref() {
            Some("Disabled") => current,
            Some("Min") => allowed.max().unwrap_or(0),
            _ => allowed.min().unwrap_or(0),
        }
    }

    /// The number of replicas at the start of a period that ends now.
    fn replicas_at_period_start(&self, period: i32, current: i32, now: Instant) -> i32 {
        let recent = self.changes.iter().filter(|(at, _)| now.duration_since(*at) < seconds(period));
        recent.fold(current, |replicas, (_, change)| replicas.saturating_sub(*change))
    }
}

fn limit_without_behavior(wanted: i32, limits: &ScalingLimits<'_>) -> (i32, ConditionText) {
    let rate = limits.current.saturating_mul(2).max(4);
    let (most, words) = if limits.max > rate { (rate, TOO_FAST_UP) } else { (limits.max, TOO_MANY) };
    match wanted {
        few if few < limits.min => (limits.min, TOO_FEW),
        many if many > most => (most, words),
        wanted => (wanted, WITHIN_RANGE),
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests;
