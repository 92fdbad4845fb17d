//! Puts the functions that every request runs side by side, in the collector built alone.
//!
//! A request runs some four hundred functions, a few lines of code of each. Where the linker leaves them among all others they are spread over 270 pages, which are out of
//! the processor's reach again by the time of the next request; side by side they are on 110. `collector.order` names them: CONTRIBUTING says how it is made. A name that is
//! not there any more, as names carry hashes of the compiler and of dependencies, is passed over, and costs what it gained.

use std::{env, path::Path};

fn main() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("collector.order");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", list.display());
    if is_the_collector_alone() && links_with_lld() {
        println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={}", list.display());
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
}

/// As its image has it: others have other names for the same functions.
fn is_the_collector_alone() -> bool {
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    has("COLLECTOR") && !["DESK", "TOOLS", "OPERATOR", "WEBHOOK", "APISERVER", "VIEWER"].into_iter().any(has)
}

/// On this target it is what Rust links with, unless somebody chose another one.
fn links_with_lld() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    is("PROFILE", "release")
        && is("TARGET", "x86_64-unknown-linux-gnu")
        && env::var_os("RUSTC_LINKER").is_none()
        && !env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"))
}
