//! The operator as a process: it stands for election, and runs all controllers and watches while it leads.
//!
//! *Guaranteed*: one operator at a time acts on the cluster, and one that lost the Lease begins nothing. Uses all
//! other folders.

pub mod health;
pub mod leader;
pub mod operator;
