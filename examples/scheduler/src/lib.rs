//! A scheduler, and the operator that owns its configuration: the example of `kubewake-trail` for operators with operands.
//!
//! What is decided is pure: [`plugin`] has the rules, [`cycle`] asks them for one pod and tells what each of them said, [`queue`] knows who is tried when, [`cluster`] what
//! is taken. [`configuration`] is the document by which [`operator`] and [`scheduler`] understand each other. The README shows the traces that they make.

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
