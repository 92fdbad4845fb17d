//! The rules of kube-apiserver's handlers as seen by clients: the order of the checks, and the statuses and
//! messages of errors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "rules/admission.rs"]
mod admission;
#[path = "rules/custom.rs"]
mod custom;
#[path = "rules/deletes.rs"]
mod deletes;
#[path = "support/raw.rs"]
mod raw;
#[path = "rules/reads.rs"]
mod reads;
#[path = "rules/stage.rs"]
mod stage;
#[path = "rules/writes.rs"]
mod writes;
