//! The targets of `kubewake_fuzz::otlp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewake_fuzz::run_chosen(&kubewake_fuzz::otlp::TARGETS, data));
