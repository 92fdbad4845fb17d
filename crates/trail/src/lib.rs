//! One trace through operators and their operands, for authors of operators on kube-rs.
//!
//! A change of an object causes work in many processes. None of them calls the next: they watch. So the trace
//! context travels on the objects themselves, in an annotation. This crate reads and writes that annotation,
//! and records the work of controllers as spans.
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
//! Inside the reconciler, [`Trail::child`] creates and applies children and [`Trail::patch_status`] patches the
//! status; both record spans and leave stamps. [`PendingWrites`] keeps a reconciler from acting on state that it has
//! changed already.
//!
//! *Guaranteed*: no content of an annotation breaks a reconcile; runs that change nothing leave no spans; an
//! exporter that is down slows nothing down. docs/tracing-an-operator.md has the rules.

#![deny(missing_docs)]

/// Compiles the code blocks of the guide.
#[cfg(all(doctest, feature = "setup"))]
#[doc = include_str!("../../../docs/tracing-an-operator.md")]
struct Guide;

pub mod attributes;
pub mod carrier;
mod child;
pub mod client;
pub mod connect;
pub mod context;
pub mod controller;
mod converge;
mod deferred_spans;
mod errors;
pub mod events;
mod lineage;
pub mod operand;
mod pending_writes;
mod run;
pub mod sampler;
#[cfg(feature = "setup")]
pub mod setup;
mod status;
mod trail;
mod trust;

pub use child::ChildWriter;
pub use controller::Controller;
pub use deferred_spans::DeferredSpanProcessor;
pub use errors::error_chain;
pub use pending_writes::PendingWrites;
pub use run::Run;
pub use sampler::FollowLinks;
#[cfg(feature = "setup")]
pub use setup::{TelemetryGuard, TelemetrySetup, setup, tracing_layer};
pub use trail::{Options, TraceMode, Trail, TrailClock, TrailCounters};
pub use trust::NamespaceTrust;
