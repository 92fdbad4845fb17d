//! Which program, with which arguments, and where.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::{TooLong, Variables};
use crate::{images::Program, kubelet::volumes::within};

/// The working directory: under the root if there is one, else the node's; one that is nowhere is made under the root.
pub(super) fn directory(container: &Container, root: &Path) -> PathBuf {
    match container.working_dir.as_deref() {
        None | Some("") => root.to_owned(),
        Some(dir) => overlaid(root, Path::new(dir)),
    }
}

/// Program and arguments. As with an image, `command` stands for the program with its arguments, and `args` for what follows.
pub(super) fn line(
    container: &Container,
    image: &Program,
    variables: &mut Variables,
    root: &Path,
    dir: &Path,
) -> Result<(PathBuf, Vec<String>), TooLong> {
    let mut expanded = |texts: &Option<Vec<String>>| -> Result<Vec<String>, TooLong> {
        texts.iter().flatten().map(|text| variables.expand(text)).collect()
    };
    let args = expanded(&container.args)?;
    let mut command = expanded(&container.command)?.into_iter();
    Ok(match command.next() {
        None => (image.path.clone(), image.args.iter().cloned().chain(args).collect()),
        Some(program) => (find(Path::new(&program), &image.path, root, dir), command.chain(args).collect()),
    })
}

/// The program that a command names. One that is nowhere on this node is the image's own, if it has the same name: `/usr/local/bin/app`
/// is where an image has it, and not where it was built.
fn find(program: &Path, image: &Path, root: &Path, dir: &Path) -> PathBuf {
    let same_name = program.file_name().is_some() && program.file_name() == image.file_name();
    if program.components().count() == 1 && !program.is_absolute() {
        // A name: whoever starts it looks it up.
        return if same_name { image.to_owned() } else { program.to_owned() };
    }
    let found = if program.is_absolute() { overlaid(root, program) } else { dir.join(program) };
    if same_name && !found.exists() { image.to_owned() } else { found }
}

/// A path of the container as one of the node: what the root has, else what the node has, else where the root would have it.
fn overlaid(root: &Path, path: &Path) -> PathBuf {
    let inside = root.join(within(path));
    let is_inside = !path.starts_with(root) && (inside.exists() || !path.exists());
    if is_inside { inside } else { path.to_owned() }
}
