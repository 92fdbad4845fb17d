//! The telemetry resources: their schema, their validation, and the collectors' documents that result from
//! them.
//!
//! ```text
//! v1alpha1::TracePipeline … → TelemetryPipeline → validate → ValidPipeline → render → CollectorConfigs
//! ```
//!
//! Everything here is pure: no client, no clock, no disk. The content of Secrets and the current time are
//! arguments.
//!
//! - [`v1alpha1`]: the resources as they are written, and [`crds()`] their definitions;
//! - [`TelemetryPipeline`]: a pipeline of any kind, and [`ValueReference`] what it references;
//! - [`validate()`]: checks a pipeline, and returns all problems or a [`ValidPipeline`];
//! - [`render()`]: documents for the collectors, and the Secret that they refer to;
//! - [`CollectorSettings`]: how the collectors run;
//! - [`ConditionReason`], [`ConditionType`], [`State`], [`DeliveryOutcome`]: the vocabulary of statuses.

#![deny(missing_docs)]

mod condition;
mod crds;
pub mod destination;
pub mod pipeline;
mod reference;
pub mod render;
mod settings;
pub mod v1alpha1;
mod valid_pipeline;
mod validate;

pub use condition::{ConditionReason, ConditionType, DeliveryOutcome, State};
pub use crds::crds;
pub use kubewake_otlp::Signal;
pub use pipeline::TelemetryPipeline;
pub use reference::{ReferenceKind, ReferencedValue, ResolvedReferences, ValueReference};
pub use render::{CollectorConfigs, RenderedDocument, render};
pub use settings::{CollectorSettings, EffectiveResources, image_name_error, validate_telemetry};
pub use valid_pipeline::ValidPipeline;
pub use validate::{SpecProblem, ValidationReport, validate, validate_spec};
