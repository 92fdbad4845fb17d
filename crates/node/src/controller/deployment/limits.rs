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
