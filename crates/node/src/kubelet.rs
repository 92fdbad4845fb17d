//! What the kubelet does on a node: pods as processes, their files and their health.

pub mod probe;
