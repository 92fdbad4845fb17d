//! For build scripts: makes the linker place a program's hot functions next to each other.
//!
//! A request to a collector runs some four hundred functions, a few lines of code of each. In the linker's own
//! order they are spread over 270 pages, which the processor no longer caches by the time of the next request;
//! next to each other they take 110. A list names them, hottest first and with `*` for the hashes in their
//! names, so that it matches every build; `cargo xtask order` creates it.
//!
//! *Guaranteed*: only the order of functions changes. A name that no longer exists is ignored, and only its own
//! gain is lost. *Not done*: builds for other systems than Linux, and debug builds, which nobody measures.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// Links the programs of this package in the order of a list, a file in the package's folder.
pub fn apply(list: &str) -> io::Result<()> {
    let list = variable("CARGO_MANIFEST_DIR").map(|folder| Path::new(&folder).join(list))?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", list.display());
    if variable("PROFILE")? == "release" && variable("CARGO_CFG_TARGET_OS")? == "linux" {
        let script = PathBuf::from(variable("OUT_DIR")?).join("order.ld");
        fs::write(&script, linker_script(&fs::read_to_string(list)?))?;
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
    Ok(())
}

/// A variable that cargo sets for build scripts.
fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}

/// A linker script that inserts the functions at the start of the code, into the linker's own layout. Rust's
/// compiler gives every function a section of its own, named after it.
fn linker_script(functions: &str) -> String {
    let sections: String = functions.lines().map(|function| format!("    *(.text.{function})\n")).collect();
    format!("SECTIONS {{\n  .text : {{\n{sections}  }}\n}}\nINSERT BEFORE .init;\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_come_in_the_order_of_the_list() {
        let script = super::linker_script("_ZN4scan17h*E\nmi_free\n");
        assert!(script.contains("*(.text._ZN4scan17h*E)\n    *(.text.mi_free)\n"), "{script}");
    }
}
