//! Sizes of images.

use super::{
    BenchPlan,
    section::{BenchSection, format_mib},
};
use crate::image;

/// Limit of each program; they had 106, 75 and 62 MB with debug information.
const MAX_PROGRAM: u64 = 40 << 20;

/// Builds all images as they are released, and measures them.
pub(crate) fn run(_: &BenchPlan) -> anyhow::Result<BenchSection> {
    let what = "Each image as `cargo xtask image` makes it: the program without debug information, and the archive that nodes load.";
    let mut section = BenchSection::new("Images", what);
    section.header(&["image", "program", "archive"]);
    let mut largest = 0;
    for size in image::measure_sizes()? {
        largest = largest.max(size.program);
        section.row([size.name.to_owned(), format_mib(size.program), format_mib(size.archive)]);
    }
    section.check(
        format!("programs of at most {}", format_mib(MAX_PROGRAM)),
        format_mib(largest),
        largest <= MAX_PROGRAM,
    );
    Ok(section)
}
