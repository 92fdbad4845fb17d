//! The objects that the operator made: the cache of them, and server-side apply where they differ.
//!
//! *Guaranteed*: only labelled objects of a closed set of kinds are read, and an object that matches its desired
//! state is not written. Uses `runtime` and `model`.

pub mod apply;
pub mod object_cache;
pub mod object_lookup;
pub mod pod_monitors;
