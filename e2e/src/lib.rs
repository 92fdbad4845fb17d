//! What whole-system tests are told with: the programs as processes, a network client that sends exactly the bytes that it
//! is given, and a wait for conditions.
//!
//! *Guarantees.* Everything is on the loopback interface and on addresses of its own; every process ends with the value
//! that stands for it; files are in folders that go with it. Nothing here sleeps for a time that a test chose: what is awaited is
//! a condition, with a deadline that only a broken system meets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this is test support: whatever goes wrong here is a failed test"
)]

pub mod address;
pub mod backend;
pub mod browser;
pub mod certificate;
pub mod cluster;
pub mod collector;
pub mod config;
pub mod curl;
pub mod http;
pub mod http2;
pub mod kubectl;
pub mod load;
pub mod operator;
pub mod otlp;
pub mod process;
pub mod python;
pub mod shown;
pub mod sink;
pub mod traced;
pub mod traces;
pub mod up;
pub mod viewer;
pub mod wait;

pub use address::free_address;
pub use backend::Backend;
pub use browser::Browser;
pub use certificate::Authority;
pub use cluster::Cluster;
pub use collector::Collector;
pub use config::{Config, grpc_to, http_to};
pub use curl::{Grpc, curl};
pub use http::{Answer, Connection};
pub use http2::Http2;
pub use kubectl::Kubectl;
pub use load::Load;
pub use operator::Operated;
pub use sink::Sink;
pub use traced::Traced;
pub use traces::Traces;
pub use up::Up;
pub use viewer::Viewer;
pub use wait::{eventually, until, until_ok};
