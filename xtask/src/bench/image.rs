//! What images weigh.

use super::{
    Plan,
    check::{Section, mib},
};
use crate::image;

/// At most this much for each program; they were 106, 75 and 62 MB while debug information was in them.
const MAX_PROGRAM: u64 = 40 << 20;

/// Makes all images as they are released, and looks.
pub(crate) fn run(_: &Plan) -> anyhow::Result<Section> {
    let what = "Each image as `cargo xtask image` makes it: the program without debug information, and the archive that nodes load.";
    let mut section = Section::new("Images", what);
    section.header(&["image", "program", "archive"]);
    let mut largest = 0;
    for size in image::sizes()? {
        largest = largest.max(size.program);
        section.row([size.name.to_owned(), mib(size.program), mib(size.archive)]);
    }
    section.check(format!("programs of at most {}", mib(MAX_PROGRAM)), mib(largest), largest <= MAX_PROGRAM);
    Ok(section)
}
