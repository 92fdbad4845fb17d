//! The control plane: reconciles pipeline resources into a running collector layer, which exists only while
//! there are pipelines.
//!
//! The folders follow the life of a pipeline, and each may use only those below it:
//!
//! | folder | what it does |
//! | --- | --- |
//! | [`process`] | the operator as a process: election, controllers and watches, health endpoint |
//! | [`reconcile`](mod@reconcile) | one pipeline: fetch → validate → slot → layer → status; the Telemetry's status |
//! | [`admission`] | the validating webhook |
//! | [`layer`] | the documents and objects of all pipelines together: render → build → apply; orphans |
//! | [`feedback`] | what collectors report: delivery health, documents read, readiness, losses at shutdown |
//! | [`pipeline`] | what is known about pipelines: referenced values, slots, validations, last valid specs |
//! | [`objects`] | the objects that the operator made: cache, comparison, server-side apply |
//! | [`runtime`] | metrics, resync trigger, errors as labels and text |
//! | [`model`] | names, labels and kinds |
//!
//! # Guarantees
//!
//! - Without pipelines there is no workload. The garbage collector removes everything with the last pipeline,
//!   whether an operator runs or not. Objects that it leaves after a deletion with `--cascade=orphan` are
//!   removed at once, or when an operator starts.
//! - At every moment at most as many pipelines of a kind are in the documents as there are slots, whatever dies
//!   when.
//! - An invalid pipeline changes nothing for the others, and its own last valid spec stays in force.
//! - Objects and statuses that are up to date are not written again.
//! - Values of Secrets are only in Secrets: the one that collectors read, and those with last valid specs.

#![allow(rustdoc::private_intra_doc_links, reason = "the table of contents is for readers of the source")]

pub mod admission;
mod context;
mod feedback;
mod layer;
mod model;
mod objects;
mod pipeline;
mod process;
mod reconcile;
mod runtime;

pub use crate::{
    context::OperatorOptions,
    feedback::delivery::health_assessment::{CollectorTier, PARTIAL_REJECTION_MESSAGE},
    model::{names, object_kind::ObjectKind},
    process::{
        health,
        leader::LeaseConfig,
        operator::{Operator, OperatorError},
    },
    reconcile::status::READY_CONDITION,
    runtime::metrics::OperatorMetrics,
};

/// Parsers of untrusted input, for fuzz targets.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::{
        feedback::delivery::{
            document_history::DocumentHistory,
            health_assessment::{CollectorAnswer, assess_delivery},
            report::CollectorStatusReport,
        },
        pipeline::last_valid,
    };
}
