//! The controller of ChildA objects.
pub mod plan;
#[cfg(test)]
mod tests;
