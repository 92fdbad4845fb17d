//! One trace through operators and their operands.

pub mod carrier;
pub mod context;
#[cfg(feature = "webhook")]
pub mod webhook;
