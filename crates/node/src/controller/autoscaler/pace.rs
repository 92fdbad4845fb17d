//! How fast the number of replicas may change: stabilisation windows, and the policies of `behavior`. No I/O, no clock.
//!
//! Without `behavior` the number at most doubles at once (or reaches four), and goes down only to what was the highest
//! recommendation of the last minutes.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerBehavior};
use tokio::time::Instant;

/// The reason and the message of a condition.
pub type Words = (&'static str, &'static str);

const MATCHES: Words = ("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILIZED: Words = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: Words = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const WITHIN: Words = ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_MANY: Words = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: Words = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_FAST_UP: Words =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const TOO_FAST_DOWN: Words =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");

/// What limits the number of replicas.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// At least so many.
    pub min: i32,
    /// At most so many.
    pub max: i32,
    /// Now there are so many.
    pub current: i32,
    /// As the autoscaler says.
    pub behavior: Option<&'a HorizontalPodAutoscalerBehavior>,
    /// How long to wait before going down if it does not say.
    pub down_window: Duration,
}

/// What became of a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paced {
    /// So many replicas there will be.
    pub replicas: i32,
    /// Of the condition `AbleToScale`, which holds.
    pub able: Words,
    /// Whether `ScalingLimited` holds.
    pub limited: bool,
    /// Of the condition `ScalingLimited`.
    pub limits: Words,
}

/// What an autoscaler recommended and did lately.
#[derive(Debug, Default)]
pub struct History {
    recommendations: Vec<(Instant, i32)>,
    /// By how much the number changed; negative for less.
    changes: Vec<(Instant, i32)>,
}

impl History {
    /// The number of replicas that there was first counts as a recommendation: a new autoscaler takes none away at once.
    pub fn begin(&mut self, current: i32, now: Instant) {
        if self.recommendations.is_empty() {
            self.recommendations.push((now, current));
        }
    }

    /// How many replicas there will be if so many are recommended.
    pub fn pace(&mut self, wanted: i32, limits: &Limits<'_>, now: Instant) -> Paced {
        let stable = self.stabilize(wanted, limits, now);
        let able = match () {
            () if stable == wanted => MATCHES,
            () if limits.behavior.is_some() && wanted >= limits.current => UP_STABILIZED,
            () => DOWN_STABILIZED,
        };
        let (replicas, words) = match limits.behavior {
            Some(behavior) => self.limit_by(behavior, stable, limits, now),
            None => limit(stable, limits),
        };
        Paced { replicas, able, limited: replicas != stable, limits: words }
    }

    /// The number of replicas was changed.
    pub fn rescaled(&mut self, before: i32, after: i32, limits: &Limits<'_>, now: Instant) {
        let rules = limits.behavior.into_iter().flat_map(|behavior| [&behavior.scale_up, &behavior.scale_down]);
        let policies = rules.flatten().filter_map(|rules| rules.policies.as_ref()).flatten();
        if let Some(longest) = policies.map(|policy| seconds(policy.period_seconds)).max() {
            self.changes.retain(|(at, _)| now.duration_since(*at) < longest);
            self.changes.push((now, after.saturating_sub(before)));
        }
    }

    /// Follows only what was recommended during the whole window. Remembers the recommendation.
    fn stabilize(&mut self, wanted: i32, limits: &Limits<'_>, now: Instant) -> i32 {
        let window = |rules: Option<&HPAScalingRules>| rules?.stabilization_window_seconds.map(seconds);
        let up = limits.behavior.and_then(|behavior| window(behavior.scale_up.as_ref())).unwrap_or_default();
        let down =
            limits.behavior.and_then(|behavior| window(behavior.scale_down.as_ref())).unwrap_or(limits.down_window);
        let recent = |window| {
            let recent = self.recommendations.iter().filter(move |(at, _)| now.duration_since(*at) < window);
            recent.map(|(_, replicas)| *replicas).chain([wanted])
        };
        let (lowest, highest) = (recent(up).min().unwrap_or(wanted), recent(down).max().unwrap_or(wanted));
        self.recommendations.retain(|(at, _)| now.duration_since(*at) < up.max(down));
        self.recommendations.push((now, wanted));
        if limits.behavior.is_some() { limits.current.max(lowest).min(highest) } else { highest }
    }

    fn limit_by(
        &self,
        behavior: &HorizontalPodAutoscalerBehavior,
        wanted: i32,
        limits: &Limits<'_>,
        now: Instant,
    ) -> (i32, Words) {
        let current = limits.current;
        if wanted > current {
            let rate = self.most(behavior.scale_up.as_ref(), current, now).max(current);
            let (most, words) = if limits.max > rate { (rate, TOO_FAST_UP) } else { (limits.max, TOO_MANY) };
            if wanted > most { (most, words) } else { (wanted, WITHIN) }
        } else if wanted < current {
            let rate = self.least(behavior.scale_down.as_ref(), current, now).min(current);
            let (least, words) = if limits.min < rate { (rate, TOO_FAST_DOWN) } else { (limits.min, TOO_FEW) };
            if wanted < least { (least, words) } else { (wanted, WITHIN) }
        } else {
            (wanted, WITHIN)
        }
    }

    /// As many as the policies allow to have now.
    fn most(&self, rules: Option<&HPAScalingRules>, current: i32, now: Instant) -> i32 {
        let Some(rules) = rules else { return i32::MAX };
        let allowed = rules.policies.iter().flatten().map(|policy| {
            let begun = self.before(policy.period_seconds, current, now);
            match policy.type_.as_str() {
                "Pods" => begun.saturating_add(policy.value),
                // Up, or a small number would never grow.
                _ => (f64::from(begun) * (1.0 + f64::from(policy.value) / 100.0)).ceil() as i32,
            }
        });
        match rules.select_policy.as_deref() {
            Some("Disabled") => current,
            Some("Min") => allowed.min().unwrap_or(i32::MAX),
            _ => allowed.max().unwrap_or(i32::MAX),
        }
    }

    /// As few as the policies allow to have now.
    fn least(&self, rules: Option<&HPAScalingRules>, current: i32, now: Instant) -> i32 {
        let Some(rules) = rules else { return 0 };
        let allowed = rules.policies.iter().flatten().map(|policy| {
            let begun = self.before(policy.period_seconds, current, now);
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

    /// How many replicas there were when a period began that ends now.
    fn before(&self, period: i32, current: i32, now: Instant) -> i32 {
        let recent = self.changes.iter().filter(|(at, _)| now.duration_since(*at) < seconds(period));
        recent.fold(current, |replicas, (_, change)| replicas.saturating_sub(*change))
    }
}

/// Without `behavior`.
fn limit(wanted: i32, limits: &Limits<'_>) -> (i32, Words) {
    let rate = limits.current.saturating_mul(2).max(4);
    let (most, words) = if limits.max > rate { (rate, TOO_FAST_UP) } else { (limits.max, TOO_MANY) };
    match wanted {
        few if few < limits.min => (limits.min, TOO_FEW),
        many if many > most => (most, words),
        wanted => (wanted, WITHIN),
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests;
