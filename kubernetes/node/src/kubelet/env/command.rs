//! Program, arguments and working directory.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::{EnvVariables, TooLong};
use crate::{images::ImageEntrypoint, kubelet::volumes::relative_to_root};

/// The working directory: under the root if it exists there, else on the node; otherwise it is created under
/// the root.
pub(super) fn working_directory(container: &Container, root: &Path) -> PathBuf {
    match container.working_dir.as_deref() {
        None | Some("") => root.to_owned(),
        Some(dir) => overlay_path(root, Path::new(dir)),
    }
}

/// Program and arguments. As with a container image, `command` replaces the program with its arguments, and
/// `args` replaces the arguments that follow.
pub(super) fn command_line(
    container: &Container,
    image: &ImageEntrypoint,
    variables: &mut EnvVariables,
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
        Some(program) => (resolve_program(Path::new(&program), &image.path, root, dir), command.chain(args).collect()),
    })
}

/// The program of a command. A path that does not exist on this node stands for the image's program if both
/// have the same name: an image has `/usr/local/bin/app` at that path, and the local build elsewhere.
fn resolve_program(program: &Path, image: &Path, root: &Path, dir: &Path) -> PathBuf {
    let same_name = program.file_name().is_some() && program.file_name() == image.file_name();
    if program.components().count() == 1 && !program.is_absolute() {
        // A bare name is looked up in `PATH` at the start.
        return if same_name { image.to_owned() } else { program.to_owned() };
    }
    let found = if program.is_absolute() { overlay_path(root, program) } else { dir.join(program) };
    if same_name && !found.exists() { image.to_owned() } else { found }
}

/// Maps a path of the container to the node: under the root if it exists there, else on the node, else under
/// the root.
fn overlay_path(root: &Path, path: &Path) -> PathBuf {
    let inside = root.join(relative_to_root(path));
    let is_inside = !path.starts_with(root) && (inside.exists() || !path.exists());
    if is_inside { inside } else { path.to_owned() }
}
