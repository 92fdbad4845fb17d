//! The controller of Heads.
pub mod plan;
#[cfg(test)]
mod tests;
