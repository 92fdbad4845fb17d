//! See `bodies::opencensus`.
#![no_main]

#[allow(dead_code, reason = "each target uses one of the bodies")]
#[path = "../../crates/otlp/tests/support/fuzz_bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::opencensus(data));
