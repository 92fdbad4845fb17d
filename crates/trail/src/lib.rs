//! One trace through operators and their operands.
//!
//! A change of an object sets off work in many processes, none of which calls the next: they watch. So the trace context travels on the objects themselves, in
//! an annotation. This crate reads and writes it, and makes spans of what controllers do: for authors of operators on kube-rs.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use futures_util::StreamExt as _;
//! # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! # use kube::{Api, Config, runtime::{controller::Action, watcher}};
//! use kubewake_trail::Controller;
//!
//! # async fn reconcile(_: Arc<Deployment>, _: Arc<()>) -> kube::Result<Action> { Ok(Action::await_change()) }
//! # fn error_policy(_: Arc<Deployment>, _: &kube::Error, _: Arc<()>) -> Action { Action::await_change() }
//! # #[cfg(feature = "setup")]
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let (telemetry, trail) = kubewake_trail::setup("my-operator")?;
//! let client = trail.client(Config::infer().await?)?;
//! Controller::new(Api::<Deployment>::all(client.clone()), watcher::Config::default())
//!     .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
//!     .run(trail, reconcile, error_policy, Arc::new(()))
//!     .for_each(|_| async {})
//!     .await;
//! telemetry.shutdown();
//! # Ok(()) }
//! ```
//!
//! Inside the reconciler, [`Trail::child`] makes children and [`Trail::patch_status`] patches the status; both leave spans and stamps.
//!
//! Guaranteed: nothing that stands in an annotation breaks a reconcile; runs that change nothing leave nothing; an exporter that is down costs nobody
//! anything. docs/tracing-an-operator.md has the rules.

/// The blocks of the guide, compiled.
#[cfg(all(doctest, feature = "setup"))]
#[doc = include_str!("../../../docs/tracing-an-operator.md")]
struct Guide;

mod attributes;
pub mod carrier;
mod child;
pub mod client;
pub mod connect;
pub mod context;
pub mod controller;
mod converge;
mod errors;
pub mod events;
mod hold;
pub mod operand;
mod relate;
mod run;
pub mod sampler;
#[cfg(feature = "setup")]
pub mod setup;
#[cfg(feature = "setup")]
pub mod spans;
mod status;
mod step;
mod trail;
mod trust;
#[cfg(feature = "webhook")]
pub mod webhook;

pub use child::Children;
pub use controller::Controller;
pub use errors::in_words;
pub use hold::Hold;
pub use run::Run;
pub use sampler::FollowLinks;
#[cfg(feature = "setup")]
pub use setup::{Setup, Telemetry, setup};
pub use trail::{Clock, Counters, Mode, Options, Trail};
pub use trust::Trust;
