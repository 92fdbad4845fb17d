//! Images: names of programs on this machine.
//!
//! A pod says which image its container runs; the table says which program that is. Nothing is pulled, so a tag, a digest and
//! the pull policy mean nothing: `kubewake/collector`, `kubewake/collector:1.2` and `docker.io/kubewake/collector@sha256:…` are
//! the same program.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// What an image is: an executable, and the arguments that come before those of the container. It is what a container
/// image's entry point is, so that `command` in a container takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable: a path, or a name that is looked up in `PATH`.
    pub path: PathBuf,
    /// Its first arguments.
    pub args: Vec<String>,
}

impl Program {
    /// A program without arguments of its own.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new() }
    }

    /// With this as its next argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }
}

/// The table of images.
#[derive(Clone, Debug, Default)]
pub struct Images(BTreeMap<String, Program>);

/// Why an entry of the table cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ImageError {
    #[error("{0:?} is not NAME=PATH, such as example/web=/usr/bin/python3")]
    Form(String),
    #[error("the program {path:?} of image {name:?} cannot be run: {why}")]
    Program { name: String, path: PathBuf, why: &'static str },
}

/// A pod names an image that is not in the table.
#[derive(Debug, thiserror::Error)]
#[error("this node has no program for image {image:?}; it has: {known}. Give it one with --image {name}=PATH")]
pub struct UnknownImage {
    image: String,
    name: String,
    known: String,
}

impl Images {
    /// With this program under this name, in place of any that it had.
    #[must_use]
    pub fn with(mut self, name: &str, program: Program) -> Self {
        self.0.insert(plain(name).to_owned(), program);
        self
    }

    /// Adds what a user wrote as `NAME=PATH`. The program must be there and be executable.
    ///
    /// # Errors
    /// If it has another form, or if nothing can be run there.
    pub fn add(&mut self, entry: &str) -> Result<(), ImageError> {
        let parts = entry.split_once('=').filter(|(name, path)| !plain(name).is_empty() && !path.is_empty());
        let (name, path) = parts.ok_or_else(|| ImageError::Form(entry.to_owned()))?;
        let path = PathBuf::from(path);
        if let Some(why) = not_executable(&path) {
            return Err(ImageError::Program { name: name.to_owned(), path, why });
        }
        // A pod runs elsewhere than whoever wrote this.
        let path = std::path::absolute(&path).unwrap_or(path);
        self.0.insert(plain(name).to_owned(), Program::new(path));
        Ok(())
    }

    /// The program of an image.
    ///
    /// # Errors
    /// If there is none; the message lists those that there are.
    pub fn find(&self, image: &str) -> Result<&Program, UnknownImage> {
        let name = plain(image);
        self.0.get(name).ok_or_else(|| UnknownImage {
            image: image.to_owned(),
            name: name.to_owned(),
            known: match self.0.len() {
                0 => "none".to_owned(),
                _ => self.names().collect::<Vec<_>>().join(", "),
            },
        })
    }

    /// The names that it knows, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

fn not_executable(path: &Path) -> Option<&'static str> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::metadata(path) {
        Err(_) => Some("there is no such file"),
        Ok(about) if !about.is_file() => Some("it is not a file"),
        Ok(about) if about.permissions().mode() & 0o111 == 0 => Some("it is not executable"),
        Ok(_) => None,
    }
}

/// The name without what says from where and which version.
fn plain(image: &str) -> &str {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    // A colon before the last slash is that of a registry's port.
    let name = match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    };
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    name.strip_prefix("library/").unwrap_or(name)
}

#[cfg(test)]
mod tests;
