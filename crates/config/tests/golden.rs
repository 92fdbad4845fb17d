//! Golden test of the messages for a document with many errors.
//!
//! `UPDATE_GOLDEN=1 cargo test -p kubewake-config --test golden` rewrites the expected output.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{env, fs, path::Path};

use kubewake_config::{FixedSources, load};

/// Compares with a file beside this one, or writes it.
fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{found}\n")).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(expected.trim_end() == found, "{name} differs; found:\n{found}");
}

#[test]
fn all_errors_are_shown_at_once() {
    let sources = FixedSources::new().with_env("BACKEND", "s3cret-host").with_env("TOKEN", "s3cret\n");
    let errors = load(include_str!("golden/errors.yaml"), &sources).unwrap_err().in_file("errors.yaml");
    compare("errors.txt", &errors.to_string());
}

#[test]
fn warnings_look_like_errors() {
    let loaded = load(include_str!("golden/warnings.yaml"), &FixedSources::new()).unwrap();
    let shown: Vec<_> =
        loaded.warnings.into_iter().map(|warning| warning.in_file("warnings.yaml").to_string()).collect();
    compare("warnings.txt", &shown.join("\n\n"));
}
