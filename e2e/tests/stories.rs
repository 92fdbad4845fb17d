//! The stories that the whole system must live up to, one file each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests, their helper functions included"
)]

mod stories {
    mod any_cluster;
    mod apiserver_tracing;
    mod attacks;
    mod backpressure;
    mod bad_input;
    mod browser;
    mod chain;
    mod cluster;
    mod commands;
    mod config;
    mod connections;
    mod curl_json;
    mod exporters;
    mod hardening;
    mod head_operator;
    mod images;
    mod install;
    mod isolation;
    mod kubectl;
    mod kubernetes_metadata;
    mod log_outputs;
    mod observe;
    mod opencensus;
    mod operator;
    mod poison;
    mod python_kubernetes;
    mod python_sdk;
    mod readme;
    mod reload;
    mod reload_held;
    mod reload_under_load;
    mod retry;
    mod sampling;
    mod scheduler;
    mod search;
    mod shaping;
    mod signals;
    mod sticky_tier;
    mod tail_sampling;
    mod tls_auth;
    mod tour;
    mod up;
    mod viewer;
    mod webhook;
}
