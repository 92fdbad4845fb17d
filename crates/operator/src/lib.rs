//! The control plane.

pub mod admission;
pub mod apply;
pub mod bell;
pub mod kind;
pub mod live;
pub mod lock;
pub mod names;
