//! Images: local programs under the image names that pods use.
//!
//! *Guaranteed*: names are completed as by a container runtime ([`mod@reference`]), and an image is found only
//! under its complete name: `kubewake/collector` is `docker.io/kubewake/collector:latest`, which is another
//! image than `docker.io/kubewake/collector:0.1.0`. An image added by [`ImageStore::with_image`] or
//! [`ImageStore::add_entry`] is present on every node and can be pulled, as if a registry had it. An image from
//! an archive ([`ImageStore::import`]) is present, but cannot be pulled.
//!
//! *Not done*: registries and isolation. Only the files and the entry point of an archive are used, not its
//! environment, working directory and user.

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
use self::reference::{ImageReferenceError, NormalizedReference};

/// The entry point of an image: an executable with leading arguments. As with a container image, `command` of a
/// container replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEntrypoint {
    /// The executable: a path, or a name that is looked up in `PATH`.
    pub path: PathBuf,
    pub args: Vec<String>,
}

impl ImageEntrypoint {
    /// A program without arguments.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new() }
    }

    /// Appends an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }
}

/// An image that a node can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalImage {
    /// The complete name, as in the status of a pod.
    pub name: String,
    pub id: String,
    pub entrypoint: ImageEntrypoint,
    /// Whether the image can be pulled. Otherwise it is used only where the pull policy allows a present image.
    is_pullable: bool,
}

/// The images of a node.
#[derive(Clone, Debug, Default)]
pub struct ImageStore {
    /// Images by name. Names from archives may be incomplete; such an image is never found.
    stored: BTreeMap<String, LocalImage>,
    /// The names that the user assigned programs to.
    given: BTreeSet<String>,
}

/// The reason why an entry of the form `NAME=PATH` is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{0:?} is not NAME=PATH, such as example/web=/usr/bin/python3")]
    InvalidEntry(String),
    #[error("{name:?} is not a valid image name")]
    Name { name: String, source: ImageReferenceError },
    #[error("the program {path:?} of image {name:?} cannot be run: {why}")]
    Program { name: String, path: PathBuf, why: String },
    #[error("image {name:?} is defined twice: it already has program {path:?}")]
    Duplicate { name: String, path: PathBuf },
}

/// The image cannot be pulled. The message is containerd's, followed by the images of this node.
#[derive(Debug, thiserror::Error)]
#[error(
    "rpc error: code = NotFound desc = failed to pull and unpack image \"{name}\": failed to resolve reference \"{name}\": \
     {name}: not found ({remedy})"
)]
pub struct PullError {
    name: String,
    /// The available images and a hint.
    remedy: String,
}

impl ImageStore {
    /// Adds or replaces the program of this name.
    #[must_use]
    pub fn with_image(mut self, name: &str, program: ImageEntrypoint) -> Self {
        self.store(complete_name(name).unwrap_or_else(|_| name.to_owned()), program);
        self
    }

    /// Adds an entry of the form `NAME=PATH` from the user, and replaces a program that was predefined under
    /// this name. The program must exist and be executable.
    ///
    /// # Errors
    /// If the form is wrong, if the user has assigned another program to the name, or if the program is not
    /// executable.
    pub fn add_entry(&mut self, entry: &str) -> Result<(), ImageError> {
        let parts = entry.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
        let (name, path) = parts.ok_or_else(|| ImageError::InvalidEntry(entry.to_owned()))?;
        let path = PathBuf::from(path);
        if let Some(why) = why_not_executable(&path) {
            return Err(ImageError::Program { name: name.to_owned(), path, why });
        }
        // Pods have other working directories, so the path must be absolute.
        let path = std::path::absolute(&path).unwrap_or(path);
        let name = complete_name(name).map_err(|source| ImageError::Name { name: name.to_owned(), source })?;
        if !self.given.insert(name.clone()) {
            let path = self.stored.get(&name).map(|held| held.entrypoint.path.clone()).unwrap_or_default();
            return Err(ImageError::Duplicate { name, path });
        }
        self.store(name, ImageEntrypoint::new(path));
        Ok(())
    }

    fn store(&mut self, name: String, program: ImageEntrypoint) {
        let id = format!("kubewake://{}", program.path.display());
        self.stored.insert(name.clone(), LocalImage { name, id, entrypoint: program, is_pullable: true });
    }

    /// Imports the images of an archive, as `ctr images import` does, and returns their names. Their files are
    /// unpacked below `folder`. Blocks until that is done.
    ///
    /// # Errors
    /// If the file is not an image archive or cannot be unpacked.
    pub fn import(&mut self, archive: &Path, folder: &Path) -> Result<Vec<String>, ArchiveError> {
        let images = archive::import(archive, folder)?;
        let names = images.iter().map(|image| image.name.clone()).collect();
        for image in images {
            // Lookups use complete names, so an image with an incomplete name is never found.
            let by_digest = NormalizedReference::parse(&image.name).ok().filter(|name| name.to_string() == image.name);
            if let Some(by_digest) = by_digest.map(|name| name.with_digest(&image.digest).to_string()) {
                self.stored.insert(by_digest, image.to_local());
            }
            self.stored.insert(image.name.clone(), image.to_local());
        }
        Ok(names)
    }

    /// The image that is present under this name.
    pub fn find_present(&self, name: &NormalizedReference) -> Option<&LocalImage> {
        self.stored.get(&name.to_string())
    }

    /// The image that can be pulled under this name.
    ///
    /// # Errors
    /// If there is none; the message lists the available ones.
    pub fn pull(&self, name: &NormalizedReference) -> Result<&LocalImage, PullError> {
        match self.find_present(name) {
            Some(image) if image.is_pullable => Ok(image),
            found => Err(PullError { name: name.to_string(), remedy: self.pull_remedy(name, found.is_some()) }),
        }
    }

    fn pull_remedy(&self, name: &NormalizedReference, is_imported: bool) -> String {
        if is_imported {
            return "this cluster does not pull images, and has this image from an archive: set imagePullPolicy: IfNotPresent"
                .to_owned();
        }
        let known = match self.stored.len() {
            0 => "none".to_owned(),
            _ => self.names().collect::<Vec<_>>().join(", "),
        };
        format!("this cluster does not pull images; it has: {known}. Add a program with --image {name}=PATH")
    }

    /// The names of all images, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.stored.keys().map(String::as_str)
    }
}

fn complete_name(name: &str) -> Result<String, ImageReferenceError> {
    NormalizedReference::parse(name).map(|reference| reference.to_string())
}

fn why_not_executable(path: &Path) -> Option<String> {
    let why = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => "file not found",
        Err(error) => return Some(error.to_string()),
        Ok(about) if !about.is_file() => "it is not a file",
        Ok(_) if access(path, Access::EXEC_OK).is_err() => "it is not executable",
        Ok(_) => {
            return interpreter(path)
                .filter(|path| !path.exists())
                .map(|missing| format!("the interpreter {missing:?} of the script was not found"));
        }
    };
    Some(why.to_owned())
}

/// The interpreter of a script: the first word after `#!`.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    // 256 bytes, like the kernel. A program may be executable without being readable.
    File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(word)))
}

#[cfg(test)]
mod tests;
