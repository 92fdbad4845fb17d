//! For build scripts: puts the functions that a program runs again and again side by side.
//!
//! A request to a collector runs some four hundred functions, a few lines of code of each. Where the linker leaves them among all others they are spread over 270 pages, which
//! are out of the processor's reach again by the time of the next request; side by side they are on 110. A list names them, hottest first and with `*` for the hashes in
//! their names, so that they are found in every build; `cargo xtask order` makes it.
//!
//! *Guarantees.* Only the order of functions changes. A name that is not there any more is passed over, and costs what it gained.
//! *Does not* order what is built for anything but Linux, nor debug builds, which nobody measures.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// Links the programs of the package that is being built by this list, a file in the package's folder.
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

/// What cargo tells every build script.
fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}

/// A script that adds to the linker's own layout: what code begins with. The rest follows. Rust's compiler gives every function a section of its own, named after it.
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
