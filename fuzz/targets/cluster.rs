//! The targets of `kubewake_fuzz::cluster`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewake_fuzz::run_chosen(&kubewake_fuzz::cluster::TARGETS, data));
