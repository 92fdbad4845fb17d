//! How many pods there should be, and by how much a rollout may be off.

use k8s_openapi::api::apps::v1::Deployment;

use crate::controller::amount::{self, Rounding};

/// Of one Deployment. Wide numbers: a surge of all of two thousand million is not an overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// As many as are asked for.
    pub replicas: i64,
    /// So many more may there be.
    pub surge: i64,
    /// So many fewer may be available.
    pub unavailable: i64,
    /// Whether old and new pods may be there together.
    pub is_rolling: bool,
}

impl Limits {
    pub fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.clone().unwrap_or_default();
        let asked = spec.replicas.unwrap_or(1).max(0);
        let replicas = i64::from(asked);
        let strategy = spec.strategy.unwrap_or_default();
        if strategy.type_.as_deref() == Some("Recreate") {
            return Self { replicas, surge: 0, unavailable: 0, is_rolling: false };
        }
        let rolling = strategy.rolling_update.unwrap_or_default();
        let surge = rolling.max_surge.map_or(0, |given| amount::of(&given, asked, Rounding::Up).into());
        let unavailable = rolling.max_unavailable.map_or(0, |given| amount::of(&given, asked, Rounding::Down).into());
        // Rounding may have left no way to go on.
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        Self { replicas, surge, unavailable: unavailable.min(replicas), is_rolling: true }
    }

    /// So many there may be.
    pub fn most(&self) -> i64 {
        self.replicas.saturating_add(self.surge)
    }

    /// So many must stay available.
    pub fn fewest(&self) -> i64 {
        self.replicas - self.unavailable
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
        let limits = Limits::of(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap());
        (limits.surge, limits.unavailable)
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
        let limits = Limits::of(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap());
        assert_eq!(limits.most(), 2 * i64::from(i32::MAX));
    }

    #[test]
    fn recreating_leaves_no_play() {
        let spec = json!({"replicas": 3, "selector": {}, "template": {}, "strategy": {"type": "Recreate"}});
        let limits = Limits::of(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap());
        assert_eq!(limits, Limits { replicas: 3, surge: 0, unavailable: 0, is_rolling: false });
    }
}
