//! The whole operator against the embedded API server, which has a garbage collector and no nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod agents;
mod broken;
mod ending;
mod layer;
mod leader;
mod many;
mod monitors;
mod orphan;
mod rollout;
mod slots;
mod telemetry;
mod world;
