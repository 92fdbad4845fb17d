//! A node: pods as processes, with their environment and their files.

pub mod downward;
pub mod env;
pub mod facts;
pub mod sources;
pub mod tokens;
pub mod volumes;
