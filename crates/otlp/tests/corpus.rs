//! The seeds of the fuzzers, replayed on every test run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "support/fuzz_bodies.rs"]
mod fuzz_bodies;
#[path = "support/seeds.rs"]
mod seeds;

use std::fs;
use std::path::PathBuf;

type Body = fn(&[u8]);

/// The targets, each with its body.
const TARGETS: [(&str, Body); 5] = [
    ("scan", fuzz_bodies::scan),
    ("split", fuzz_bodies::split),
    ("retain", fuzz_bodies::retain),
    ("rewrite", fuzz_bodies::rewrite),
    ("opencensus", fuzz_bodies::opencensus),
];

fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

#[test]
fn every_seed_passes_its_target() {
    for (target, body) in TARGETS {
        let seeds: Vec<_> = fs::read_dir(folder(target)).unwrap().collect();
        assert!(!seeds.is_empty(), "{target} has seeds");
        for seed in seeds {
            body(&fs::read(seed.unwrap().path()).unwrap());
        }
    }
}

#[test]
fn the_seeds_are_those_that_are_written() {
    for (target, seeds) in seeds::all() {
        for (name, bytes) in seeds {
            let file = folder(target).join(&name);
            assert_eq!(fs::read(&file).unwrap(), bytes, "{name}: run cargo run -p kubewake-otlp --example fuzz_seeds");
        }
    }
}
