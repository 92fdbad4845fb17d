//! What every step needs while it runs: metrics, the resync trigger, and errors as labels and text.
//!
//! *Guaranteed*: labels of metrics are closed enums, and a message about an object with secrets holds none of its
//! values. Uses `model`.

pub mod error_message;
pub mod failure_cause;
pub mod metrics;
pub mod resync_trigger;
