//! Images: programs of this machine, under the names by which pods ask for them.
//!
//! *Guaranteed*: names are completed as a container runtime does ([`reference`]), and an image is found under its complete
//! name or not at all: `kubewake/collector` is `docker.io/kubewake/collector:latest`, which is another image than
//! `docker.io/kubewake/collector:0.1.0`. An image of [`Images::with`] and [`Images::add`] is present on every node and can
//! be pulled, as if a registry had it. One of an archive ([`Images::import`]) is present, and no registry has it.
//!
//! *Not done*: registries, and isolation. Of an archive, its files and its entry point are used; its environment, working
//! directory and user are not.

mod archive;
pub mod reference;
#[cfg(test)]
pub(crate) mod testing;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

pub use self::archive::ArchiveError;
use self::reference::{Reference, ReferenceError};

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

/// An image that a node can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalImage {
    /// The complete name, as a pod's status has it.
    pub name: String,
    /// What identifies its content.
    pub id: String,
    /// What it runs.
    pub program: Program,
    /// Whether it can be pulled. Otherwise it is only found where the pull policy allows a present image.
    is_pullable: bool,
}

/// The images of a node.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// By the names under which they were stored. Those of an archive may be incomplete, and are never found then.
    stored: BTreeMap<String, LocalImage>,
    /// The names that a user gave programs to.
    given: BTreeSet<String>,
}

/// Why an entry of the table cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ImageError {
    #[error("{0:?} is not NAME=PATH, such as example/web=/usr/bin/python3")]
    Form(String),
    #[error("{name:?} is no name of an image")]
    Name { name: String, source: ReferenceError },
    #[error("the program {path:?} of image {name:?} cannot be run: {why}")]
    Program { name: String, path: PathBuf, why: String },
    #[error("image {name:?} is given twice: it is {path:?} already")]
    Twice { name: String, path: PathBuf },
}

/// No registry has an image. The words are containerd's, with what this node has behind them.
#[derive(Debug, thiserror::Error)]
#[error(
    "rpc error: code = NotFound desc = failed to pull and unpack image \"{name}\": failed to resolve reference \"{name}\": \
     {name}: not found (this cluster pulls nothing; it has: {known}. Add a program with --image {name}=PATH)"
)]
pub struct PullError {
    name: String,
    known: String,
}

impl Images {
    /// With this program under this name, in place of any that it had.
    #[must_use]
    pub fn with(mut self, name: &str, program: Program) -> Self {
        self.store(complete(name).unwrap_or_else(|_| name.to_owned()), program);
        self
    }

    /// Adds what a user wrote as `NAME=PATH`, in place of a program that the table had from the start. The program must be there
    /// and be executable.
    ///
    /// # Errors
    /// If it has another form, if the user gave this name another program, or if nothing can be run there.
    pub fn add(&mut self, entry: &str) -> Result<(), ImageError> {
        let parts = entry.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
        let (name, path) = parts.ok_or_else(|| ImageError::Form(entry.to_owned()))?;
        let path = PathBuf::from(path);
        if let Some(why) = not_executable(&path) {
            return Err(ImageError::Program { name: name.to_owned(), path, why });
        }
        // A pod runs elsewhere than whoever wrote this.
        let path = std::path::absolute(&path).unwrap_or(path);
        let name = complete(name).map_err(|source| ImageError::Name { name: name.to_owned(), source })?;
        if !self.given.insert(name.clone()) {
            let path = self.stored.get(&name).map(|held| held.program.path.clone()).unwrap_or_default();
            return Err(ImageError::Twice { name, path });
        }
        self.store(name, Program::new(path));
        Ok(())
    }

    fn store(&mut self, name: String, program: Program) {
        let id = format!("kubewake://{}", program.path.display());
        self.stored.insert(name.clone(), LocalImage { name, id, program, is_pullable: true });
    }

    /// Imports the images of an archive, as `ctr images import` does, and returns their names. Their files go below
    /// `folder`. Blocks until they are unpacked.
    ///
    /// # Errors
    /// If it is no archive of images, or cannot be unpacked.
    pub fn import(&mut self, archive: &Path, folder: &Path) -> Result<Vec<String>, ArchiveError> {
        let images = archive::import(archive, folder)?;
        let names = images.iter().map(|image| image.name.clone()).collect();
        for image in images {
            // A name that a runtime would complete is looked up completed, and what has that name is not found.
            let by_digest = Reference::parse(&image.name).ok().filter(|name| name.to_string() == image.name);
            if let Some(by_digest) = by_digest.map(|name| name.with_digest(&image.digest).to_string()) {
                self.stored.insert(by_digest, image.to_local());
            }
            self.stored.insert(image.name.clone(), image.to_local());
        }
        Ok(names)
    }

    /// The image that is on the node under this name.
    pub fn find_present(&self, name: &Reference) -> Option<&LocalImage> {
        self.stored.get(&name.to_string())
    }

    /// The image of this name, as a registry has it now.
    ///
    /// # Errors
    /// If there is none; the message lists those that there are.
    pub fn pull(&self, name: &Reference) -> Result<&LocalImage, PullError> {
        self.find_present(name).filter(|image| image.is_pullable).ok_or_else(|| PullError {
            name: name.to_string(),
            known: match self.stored.len() {
                0 => "none".to_owned(),
                _ => self.names().collect::<Vec<_>>().join(", "),
            },
        })
    }

    /// The names that it knows, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.stored.keys().map(String::as_str)
    }
}

fn complete(name: &str) -> Result<String, ReferenceError> {
    Reference::parse(name).map(|reference| reference.to_string())
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

#[cfg(test)]
mod tests;
