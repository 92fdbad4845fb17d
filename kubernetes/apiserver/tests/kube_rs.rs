//! The server as authors of kube-rs operators use it: started in the test itself, and accessed only through
//! `kube`.
//!
//! Not covered: kubectl and other clients, and error messages, which are compared with recorded responses of a
//! real server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "kube_rs/access.rs"]
mod access;
#[path = "kube_rs/apply.rs"]
mod apply;
#[path = "kube_rs/controller.rs"]
mod controller;
#[path = "kube_rs/history.rs"]
mod history;
#[path = "kube_rs/leader.rs"]
mod leader;
#[path = "kube_rs/objects.rs"]
mod objects;
#[path = "kube_rs/pods.rs"]
mod pods;
#[path = "kube_rs/protobuf.rs"]
mod protobuf;
#[path = "kube_rs/races.rs"]
mod races;
#[path = "support/raw.rs"]
mod raw;
#[path = "kube_rs/services.rs"]
mod services;
#[path = "kube_rs/support.rs"]
mod support;
#[path = "kube_rs/watchers.rs"]
mod watchers;
#[path = "kube_rs/watching.rs"]
mod watching;
