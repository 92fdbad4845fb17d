//! Regenerates the seeds of the fuzz targets: `cargo run -p kubewake-otlp --example fuzz_seeds`.

#[allow(missing_docs, clippy::indexing_slicing)]
#[path = "../tests/support/seeds.rs"]
mod seeds;

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, seeds) in seeds::all() {
        fs::create_dir_all(corpus.join(target))?;
        for (name, bytes) in seeds {
            fs::write(corpus.join(target).join(name), bytes)?;
        }
    }
    Ok(())
}
