//! Loads the documents in the documentation.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, path::Path};

use kubewake_config::{FixedSources, load};

#[test]
fn every_document_on_sampling_is_right() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sampling.md");
    let text = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = text.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let loaded = load(block, &FixedSources::new()).unwrap_or_else(|errors| panic!("{block}\n{errors}"));
        assert_eq!(loaded.warnings, [], "{block}");
    }
}
