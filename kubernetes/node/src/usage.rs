//! Measured resource usage of pods, for the autoscaler.

use std::time::Duration;

use crate::key::NamespacedKey;

/// Provides the usage of pods on a node.
pub trait UsageProvider: Send + Sync {
    /// The current usage of the pod; none if it does not run, or has not run long enough to be measured.
    fn pod_usage(&self, pod: &NamespacedKey) -> Option<PodUsage>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodUsage {
    /// By container name.
    pub containers: Vec<(String, ContainerUsage)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerUsage {
    /// The average CPU usage over the window, in nanocores.
    pub cpu_nanocores: u64,
    /// The memory usage at the end of the window.
    pub memory_bytes: u64,
    /// The length of the measurement, which ended just now.
    pub window: Duration,
}
