//! Images: names of programs on this machine.
//!
//! A pod says which image its container runs; the table says which program that is. Nothing is pulled, so a tag, a digest and
//! the pull policy mean nothing: `kubewake/collector`, `kubewake/collector:1.2` and `docker.io/kubewake/collector@sha256:…` are
//! the same program.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

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
pub struct Images {
    table: BTreeMap<String, Program>,
    /// The names that a user gave programs to.
    given: BTreeSet<String>,
}

/// Why an entry of the table cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ImageError {
    #[error("{0:?} is not NAME=PATH, such as example/web=/usr/bin/python3")]
    Form(String),
    #[error("the program {path:?} of image {name:?} cannot be run: {why}")]
    Program { name: String, path: PathBuf, why: String },
    #[error("image {name:?} is given twice: it is {path:?} already")]
    Twice { name: String, path: PathBuf },
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
        self.table.insert(plain(name).to_owned(), program);
        self
    }

    /// Adds what a user wrote as `NAME=PATH`, in place of a program that the table had from the start. The program must be there
    /// and be executable.
    ///
    /// # Errors
    /// If it has another form, if the user gave this name another program, or if nothing can be run there.
    pub fn add(&mut self, entry: &str) -> Result<(), ImageError> {
        let parts = entry.split_once('=').filter(|(name, path)| !plain(name).is_empty() && !path.is_empty());
        let (name, path) = parts.ok_or_else(|| ImageError::Form(entry.to_owned()))?;
        let path = PathBuf::from(path);
        if let Some(why) = not_executable(&path) {
            return Err(ImageError::Program { name: name.to_owned(), path, why });
        }
        // A pod runs elsewhere than whoever wrote this.
        let path = std::path::absolute(&path).unwrap_or(path);
        let name = plain(name).to_owned();
        if !self.given.insert(name.clone()) {
            let path = self.table.get(&name).map(|held| held.path.clone()).unwrap_or_default();
            return Err(ImageError::Twice { name, path });
        }
        self.table.insert(name, Program::new(path));
        Ok(())
    }

    /// The program of an image.
    ///
    /// # Errors
    /// If there is none; the message lists those that there are.
    pub fn find(&self, image: &str) -> Result<&Program, UnknownImage> {
        let name = plain(image);
        self.table.get(name).ok_or_else(|| UnknownImage {
            image: image.to_owned(),
            name: name.to_owned(),
            known: match self.table.len() {
                0 => "none".to_owned(),
                _ => self.names().collect::<Vec<_>>().join(", "),
            },
        })
    }

    /// The names that it knows, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(String::as_str)
    }
}

fn not_executable(path: &Path) -> Option<String> {
    let why = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => "there is no such file",
        Err(error) => return Some(error.to_string()),
        Ok(about) if !about.is_file() => "it is not a file",
        Ok(_) if access(path, Access::EXEC_OK).is_err() => "it is not executable",
        Ok(_) => {
            return interpreter(path)
                .filter(|path| !path.exists())
                .map(|missing| format!("it is a script for {missing:?}, and there is no such file"));
        }
    };
    Some(why.to_owned())
}

/// What runs a script: the first word after `#!`.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    // As much as the system looks at. Who may not read a program may run it all the same.
    File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(word)))
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
