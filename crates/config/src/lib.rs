//! The collector's configuration document: the OpenTelemetry Collector's YAML as validated types.
//!
//! [`load`] reads a text in four steps: it parses YAML to a tree in which every node has its position, expands
//! references (`${env:NAME}`, `${file:path}`), decodes fields into the [`model`], and checks references between
//! components. No step stops at the first error; [`DocumentErrors`] holds all of them, each with its path, its
//! line and how to fix it. Programs that make documents use the same types: [`CollectorDocument::to_yaml`] writes them.
//!
//! # Guarantees
//!
//! - A [`CollectorDocument`] that [`load`] returns has passed every check.
//! - Nothing in a document is ignored silently: each setting is understood, warned about, or refused.
//! - Secrets are in [`SecretString`]s, and in no message. Nor is any value that came from the environment or a
//!   file. A line of the document is shown with all masked but its keys and values that are known to be no
//!   secrets. One case is not recognised: a secret that was written where a key or a public value belongs.
//! - No text makes [`load`] panic, run on, or take memory beyond a fixed multiple of its length.
//!
//! All access to the environment and files goes through [`ConfigSources`], which also locates the files that a
//! document names.

mod component;
mod config_text;
mod connector;
mod decode;
mod encode;
mod expand;
mod exporter;
mod extension;
mod fingerprint;
mod id;
mod kubeconfig;
mod load;
mod matching;
pub mod model;
mod name_template;
mod network;
mod pattern;
mod problem;
mod processor;
mod receiver;
mod secret;
mod sending;
mod service;
mod service_account;
mod sources;
mod yaml;

pub use component::ComponentType;
pub use config_text::{ConfigText, TextReference};
pub use decode::{DurationError, parse_duration};
pub use encode::{EncodeError, escape};
pub use fingerprint::fingerprint;
pub use id::{ComponentId, PipelineId};
pub use kubeconfig::{KubeconfigContext, KubeconfigCredential, KubeconfigError};
pub use load::{LoadedDocument, load};
pub use model::CollectorDocument;
pub use pattern::{PatternError, RegexPattern};
pub use problem::{DocumentErrors, DocumentProblem, ProblemSeverity, TextPosition};
pub use receiver::file_log;
pub use secret::SecretString;
pub use sources::{ConfigSources, FixedSources};
pub use yaml::MAX_DOCUMENT_BYTES;
