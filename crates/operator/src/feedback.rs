//! What collectors report: delivery health and the documents that they have read, from polls of `/status`; their
//! readiness, from workloads and pods; and losses at their end, from termination messages.
//!
//! *Guaranteed*: reports have bounded size and age, and a collector that does not answer counts as absent. Nothing
//! is written to the cluster but events about deleted pipelines. Uses `pipeline`, `objects`, `runtime` and `model`.

pub mod collector_readiness;
pub mod delivery;
pub mod delivery_health;
pub mod shutdown_losses;
