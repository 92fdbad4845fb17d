//! Puts the functions that every request to a collector runs side by side.

use std::{env, io};

fn main() -> io::Result<()> {
    match env::var_os("CARGO_FEATURE_COLLECTOR") {
        Some(_) => kubewake_link_order::apply("collector.order"),
        None => Ok(()),
    }
}
