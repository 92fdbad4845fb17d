//! What the operator knows about pipelines: the values that they reference, their slots, their validations, and
//! their last valid specs.
//!
//! *Guaranteed*: at most as many pipelines hold a slot as there are slots, and a pipeline that becomes invalid
//! keeps its last valid spec, also across restarts. Uses `objects`, `runtime` and `model`.

pub mod last_valid;
pub mod pipeline_cache;
pub mod slot_lock;
pub mod source_watcher;
