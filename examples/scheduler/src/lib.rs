//! A scheduler and the operator that owns its configuration, traced from the change of a configuration to the pod that it decided.

pub mod api;
pub mod cli;
pub mod cluster;
pub mod configuration;
pub mod cycle;
pub mod manifests;
pub mod operator;
pub mod plugin;
pub mod quantity;
pub mod queue;
pub mod resources;
pub mod scheduler;
