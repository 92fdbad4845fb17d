//! The collector's configuration document: the OpenTelemetry Collector's YAML, as checked types.
//!
//! [`load`] reads a text in four steps: YAML to a tree in which every node knows its place, references
//! (`${env:NAME}`, `${file:path}`) expanded, fields decoded into the [`model`], and references between components
//! checked. No step stops at the first error; [`Errors`] holds all of them, each with its path, its line and how to mend
//! it.
//!
//! # Guarantees
//!
//! - A [`Document`] that [`load`] returns has passed every check.
//! - Nothing that a document says is ignored in silence: it is understood, or warned about, or refused.
//! - Secrets are in [`Secret`]s, and in no message. Nor is anything that came from the environment or a file. A line of
//!   the document is shown with all masked but its keys and values that are known to be no secrets. What is not
//!   recognised: a secret that was written where a key or a public value belongs.
//! - No text makes [`load`] panic, run on, or take memory beyond a fixed multiple of its length.
//!
//! The crate reads the world only through [`Sources`]; [`mounted`] says where files are.

mod decode;
mod expand;
mod fingerprint;
mod id;
mod kubeconfig;
mod load;
pub mod model;
mod mounted;
mod pattern;
mod problem;
mod secret;
mod sources;
pub mod written;
mod yaml;

pub use decode::{DurationError, parse_duration};
pub use fingerprint::fingerprint;
pub use id::{ComponentId, PipelineId};
pub use kubeconfig::{Kubeconfig, KubeconfigError, Material};
pub use load::{Loaded, load};
pub use model::Document;
pub use mounted::mounted;
pub use pattern::{Pattern, PatternError};
pub use problem::{Errors, Position, Problem, Severity};
pub use secret::Secret;
pub use sources::{FixedSources, Sources, SystemSources};
