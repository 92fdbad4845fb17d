//! What pods really use of the machine, for the autoscaler.

use std::time::Duration;

use crate::key::Key;

/// Whoever runs pods knows what they use.
pub trait Usage: Send + Sync {
    /// What the pod uses now; none if it does not run, or has not run long enough to tell.
    fn of(&self, pod: &Key) -> Option<PodUsage>;
}

/// Of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodUsage {
    /// By name of the container.
    pub containers: Vec<(String, ContainerUsage)>,
}

/// Of one container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerUsage {
    /// CPU, as the average of the window: 10⁹ is one core.
    pub cpu_nanocores: u64,
    /// Memory, at the end of the window.
    pub memory_bytes: u64,
    /// How long the measurement took. It ended just now.
    pub window: Duration,
}
