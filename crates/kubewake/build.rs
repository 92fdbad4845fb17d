//! Puts the functions that every request to a collector runs side by side.
//!
//! A request runs some four hundred functions, a few lines of code of each. Where the linker leaves them among all others they are spread over 270 pages, which are out of
//! the processor's reach again by the time of the next request; side by side they are on 110. `collector.order` names them, hottest first and with `*` for the hashes in
//! their names, so that they are found in every build; `cargo xtask order` makes it. A name that is not there any more is passed over, and costs what it gained.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("collector.order");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", list.display());
    if is_a_collector_for_users() {
        let script = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("collector.ld");
        fs::write(&script, linker_script(&fs::read_to_string(list)?))?;
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
    Ok(())
}

fn is_a_collector_for_users() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    env::var_os("CARGO_FEATURE_COLLECTOR").is_some() && is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux")
}

/// A script that adds to the linker's own layout: what code begins with. The rest follows. Rust's compiler gives every function a section of its own, named after it.
fn linker_script(functions: &str) -> String {
    let sections: String = functions.lines().map(|function| format!("    *(.text.{function})\n")).collect();
    format!("SECTIONS {{\n  .text : {{\n{sections}  }}\n}}\nINSERT BEFORE .init;\n")
}
