//! One trace through operators and their operands.

pub mod carrier;
pub mod context;
