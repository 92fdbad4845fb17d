//! The collector's configuration document.

mod id;
pub mod model;
mod secret;

pub use id::{ComponentId, PipelineId};
pub use model::Document;
pub use secret::Secret;
