//! A scheduler, and the operator that owns its configuration: the example of `kubewake-trail` for operators
//! with operands.
//!
//! The decisions are pure: [`plugin`] has the rules, [`cycle`] applies them to one pod and records the results,
//! [`queue`] decides which pod is next, and [`cluster`] tracks the used resources. [`configuration`] is the
//! document that connects [`operator`] and [`scheduler`]. The README shows the resulting traces.

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
