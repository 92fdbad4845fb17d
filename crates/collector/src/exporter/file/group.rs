//! `group_by`: a file for each value of a resource attribute.
//!
//! The value is a stranger's: it may hold directories, but never leads out of the part of the path before the `*`, and one
//! that cannot be part of a path costs only the resources that have it. So many files are open at once as the settings say;
//! the one that was not written to for longest is closed for another. *Does not* bound how many files there are on disk,
//! and never empties one.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use kubewake_config::model::GroupBy;
use kubewake_otlp::{Allowance, NoMemory, Signal, view, wire::put_bytes};

use super::{
    create_directory,
    sink::{Keeping, Sink},
};
use crate::core::Part;

/// The longest value that may stand in a path. File systems take names of 255 bytes, with what is around the value.
const MAX_SEGMENT: usize = 200;

/// The permissions of directories that values ask for, where the settings give none.
const DIRECTORY: u32 = 0o700;

/// What is kept of each file while a batch is sorted, beside its name and what is written to it.
const GROUP_BYTES: usize = 256;

/// The files of one exporter.
pub(super) struct Groups {
    before: String,
    after: String,
    attribute: String,
    mode: u32,
    max_open: usize,
    /// By the path that was asked for; the one that was written to last is the last.
    open: Mutex<Vec<(PathBuf, Arc<Sink>)>>,
}

/// A request by the files that it belongs to.
#[derive(Default)]
pub(super) struct Sorted {
    /// A request for each file, and its items.
    pub(super) requests: BTreeMap<PathBuf, (Vec<u8>, usize)>,
    /// Items that belong to none.
    pub(super) left: usize,
}

impl Groups {
    /// The files of a path with a `*`. The directory in which all of them are is created here.
    pub(super) fn new(path: &Path, settings: &GroupBy, mode: Option<u32>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let text = path.to_str().and_then(|text| text.split_once('*'));
        let (before, after) = text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path has no *"))?;
        let groups = Self {
            before: before.to_owned(),
            after: after.to_owned(),
            attribute: settings.resource_attribute.clone(),
            mode: mode.unwrap_or(DIRECTORY),
            max_open: usize::try_from(settings.max_open_files).unwrap_or(usize::MAX),
            open: Mutex::default(),
        };
        create_directory(Path::new(&format!("{before}_")), groups.mode)?;
        Ok(groups)
    }

    /// The attribute whose value chooses the file.
    pub(super) fn attribute(&self) -> &str {
        &self.attribute
    }

    /// Sorts the resources of a request by the files that they belong to. The requests together are as large as this one, and the
    /// charge for that covers them; but a name may be longer than a resource.
    ///
    /// # Errors
    ///
    /// If there is no memory for the names.
    pub(super) fn sort(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Sorted, NoMemory> {
        let mut requests: BTreeMap<PathBuf, (Vec<u8>, usize)> = BTreeMap::new();
        for entry in view::resources(&part.bytes) {
            let resource = entry.resource();
            let value = resource.attributes().text(&self.attribute).and_then(|value| str::from_utf8(value).ok());
            if let Some(path) = value.and_then(|value| self.path(value)) {
                let size = path.as_os_str().len() + GROUP_BYTES;
                let request = match requests.entry(path) {
                    Entry::Occupied(known) => &mut known.into_mut().0,
                    Entry::Vacant(_) if !memory.reserve(size) => return Err(NoMemory),
                    Entry::Vacant(new) => &mut new.insert(Default::default()).0,
                };
                put_bytes(request, 1, entry.as_bytes());
            }
        }
        let mut left = part.items;
        for (request, items) in requests.values_mut() {
            *items = kubewake_otlp::scan(signal, request).map_or(0, |summary| summary.items);
            left = left.saturating_sub(*items);
        }
        Ok(Sorted { requests, left })
    }

    /// The file of a value, if there can be one.
    fn path(&self, value: &str) -> Option<PathBuf> {
        if value.len() > MAX_SEGMENT || value.contains('\0') {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in value.split('/') {
            match part {
                "" | "." => {}
                // Not above the place of the value.
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        Some(PathBuf::from(format!("{}{}{}", self.before, parts.join("/"), self.after)))
    }

    /// A file, opened when it is written to.
    pub(super) fn open(&self, path: &Path) -> io::Result<Arc<Sink>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let sink = match open.iter().position(|(known, _)| known == path) {
            Some(at) => open.remove(at).1,
            None => {
                create_directory(path, self.mode)?;
                Sink::at(path, Keeping::WhileUsed)?
            }
        };
        if open.len() >= self.max_open {
            // It is closed when whoever writes to it at the moment is done.
            open.remove(0);
        }
        open.push((path.to_owned(), sink.clone()));
        Ok(sink)
    }
}

/// Whether a path will never work, because of the value in it.
pub(super) fn is_hopeless(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    // `mkdir` of a path that is a file says that it is there.
    let hopeless = [InvalidFilename, InvalidInput, IsADirectory, NotADirectory, io::ErrorKind::AlreadyExists];
    hopeless.contains(&error.kind())
}

#[cfg(test)]
mod tests;
