//! The harness of whole-system tests: the programs as processes, a network client that sends exactly the bytes
//! that it is given, and waits for conditions.
//!
//! *Guaranteed.* Everything listens on the loopback interface and on addresses of its own; every process ends
//! when its value is dropped; files are in temporary folders. No test sleeps for a chosen time: it waits for a
//! condition, with a deadline that only a broken system exceeds.
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
pub mod documented_output;
pub mod http;
pub mod http2;
pub mod kubectl;
pub mod load;
pub mod loki;
pub mod operator;
pub mod otlp;
pub mod process;
pub mod python;
pub mod search_server;
pub mod sink;
pub mod traced_cluster;
pub mod traces;
pub mod up_process;
pub mod viewer;
pub mod wait;

pub use address::free_address;
pub use backend::HttpBackend;
pub use browser::Browser;
pub use certificate::TestAuthority;
pub use cluster::ClusterUnderTest;
pub use collector::CollectorProcess;
pub use config::{ConfigBuilder, grpc_to, http_to};
pub use curl::{GrpcCall, curl};
pub use http::{Http1Connection, HttpResponse};
pub use http2::Http2Connection;
pub use kubectl::Kubectl;
pub use load::LoadGenerator;
pub use loki::{LokiAnswer, LokiBackend};
pub use operator::OperatorCluster;
pub use search_server::{SearchBehavior, SearchKind, SearchServer};
pub use sink::SinkProcess;
pub use traced_cluster::TracedCluster;
pub use traces::TraceReceiver;
pub use up_process::UpProcess;
pub use viewer::ViewerProcess;
pub use wait::{wait_for, wait_for_ok, wait_until};
