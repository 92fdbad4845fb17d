//! The limits of a rollout: the desired number of pods, and the allowed deviation.

use k8s_openapi::api::apps::v1::Deployment;

use crate::controller::int_or_percent::{self, Rounding};

/// The limits of one Deployment. 64 bits, so that a surge of 100 % of two thousand million pods does not
/// overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RolloutLimits {
    pub replicas: i64,
    /// The allowed number of additional pods.
    pub max_surge: i64,
    /// The allowed number of unavailable pods.
    pub max_unavailable: i64,
    /// Whether old and new pods may exist together.
    pub is_rolling: bool,
}

impl RolloutLimits {
    pub fn for_deployment(deployment: &Deployment) -> Self {
        let spec = deployment.spec.clone().unwrap_or_default();
        let asked = spec.replicas.unwrap_or(1).max(0);
        let replicas = i64::from(asked);
        let strategy = spec.strategy.unwrap_or_default();
        if strategy.type_.as_deref() == Some("Recreate") {
            return Self { replicas, max_surge: 0, max_unavailable: 0, is_rolling: false };
        }
        let rolling = strategy.rolling_update.unwrap_or_default();
        let surge =
            rolling.max_surge.map_or(0, |given| int_or_percent::scaled_value(&given, asked, Rounding::Up).into());
        let unavailable = rolling
            .max_unavailable
            .map_or(0, |given| int_or_percent::scaled_value(&given, asked, Rounding::Down).into());
        // Rounding may have reduced both to zero, and then no rollout could proceed.
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        Self { replicas, max_surge: surge, max_unavailable: unavailable.min(replicas), is_rolling: true }
    }

    /// The most pods that may exist.
    pub fn max_total(&self) -> i64 {
        self.replicas.saturating_add(self.max_surge)
    }

    /// The least pods that must be available.
    pub fn min_available(&self) -> i64 {
        self.replicas - self.max_unavailable
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limits(replicas: i32, surge: Value, unavailable: Value) -> (i64, i64) {
        let strategy =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let spec = json!({"replicas": replicas, "strategy": strategy, "selector": {}, "template": {}});
        let limits =
            RolloutLimits::for_deployment(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap());
        (limits.max_surge, limits.max_unavailable)
    }

    #[test]
    fn a_surge_is_rounded_up_and_what_may_be_missing_down() {
        assert_eq!(limits(10, json!("25%"), json!("25%")), (3, 2));
        assert_eq!(limits(1, json!("25%"), json!("25%")), (1, 0));
        assert_eq!(limits(10, json!(4), json!(3)), (4, 3));
    }

    #[test]
    fn there_is_always_a_way_to_go_on() {
        assert_eq!(limits(2, json!("0%"), json!("1%")), (0, 1));
        assert_eq!(limits(2, json!(0), json!(0)), (0, 1));
    }

    #[test]
    fn no_more_can_be_missing_than_there_are() {
        assert_eq!(limits(2, json!(1), json!(5)), (1, 2));
        assert_eq!(limits(0, json!(1), json!(5)), (1, 0));
    }

    #[test]
    fn numbers_at_the_edge_do_not_overflow() {
        let spec = json!({"replicas": i32::MAX, "selector": {}, "template": {}, "strategy": {"rollingUpdate": {"maxSurge": "100%"}}});
        let limits =
            RolloutLimits::for_deployment(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap());
        assert_eq!(limits.max_total(), 2 * i64::from(i32::MAX));
    }

    #[test]
    fn recreating_leaves_no_play() {
        let spec = json!({"replicas": 3, "selector": {}, "template": {}, "strategy": {"type": "Recreate"}});
        let limits =
            RolloutLimits::for_deployment(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap());
        assert_eq!(limits, RolloutLimits { replicas: 3, max_surge: 0, max_unavailable: 0, is_rolling: false });
    }
}
