//! The seeds of every fuzz target, replayed on every test run.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::{fs, panic::catch_unwind, path::Path};

use kubewake_fuzz::{all_targets, memory};

/// One test for all targets, as memory is counted for all threads together.
#[test]
fn every_seed_passes_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut failed = Vec::new();
    for target in all_targets().into_iter().flat_map(|(_, targets)| targets) {
        let folder = corpus.join(target.name);
        let mut seeds: Vec<_> = fs::read_dir(&folder).map_or_else(|_| Vec::new(), Iterator::collect);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        seeds.sort_by_key(|seed| seed.as_ref().unwrap().path());
        for seed in seeds {
            let path = seed.unwrap().path();
            let data = fs::read(&path).unwrap();
            if catch_unwind(|| (target.body)(&data)).is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "seeds that fail their target: {failed:#?}");
    assert_memory_is_counted();
}

fn assert_memory_is_counted() {
    let ((), peak) = memory::peak(|| {
        drop(vec![0_u8; 100_000]);
        drop(vec![0_u8; 300_000]);
    });
    assert!((300_000..400_000).contains(&peak), "{peak}");
    let beyond = catch_unwind(|| memory::bounded("a vector", 10, 2, 50, || vec![0_u8; 100_000]));
    assert!(beyond.is_err());
}
