//! The telemetry resources: what they look like, what their rules are, and what they mean to the collectors.
//!
//! ```text
//! v1alpha1::TracePipeline …  →  Pipeline  →  references  →  validate  →  Valid  →  render  →  Layer
//! ```
//!
//! Everything here is pure: no client, no clock, no disk. What stands in Secrets and what time it is are given.
//!
//! - [`v1alpha1`]: the resources as they are written, and [`crds()`] their definitions;
//! - [`Pipeline`]: a pipeline of any kind, and [`Reference`] what it names;
//! - [`validate()`]: everything that is wrong with it, or a [`Valid`] one;
//! - [`render()`]: documents for the collectors, and the keys of the Secret that they name;
//! - [`Settings`]: how the collectors run;
//! - [`Reason`], [`ConditionType`], [`State`], [`Delivery`]: what a status says.

mod crds;
pub mod pipeline;
mod reason;
mod reference;
pub mod render;
mod settings;
pub mod v1alpha1;
mod valid;
mod validate;

pub use crds::crds;
pub use kubewake_otlp::Signal;
pub use pipeline::Pipeline;
pub use reason::{ConditionType, Delivery, Reason, State};
pub use reference::{Found, Reference, ReferenceKind, Resolved};
pub use render::{Document, Layer, render};
pub use settings::{Amounts, Settings, validate_telemetry};
pub use valid::Valid;
pub use validate::{Problem, Review, validate, validate_spec};
