//! `group_by`: a file for each value of a resource attribute.
//!
//! The value comes from a stranger: it may contain directories, but never leads out of the part of the path
//! before the `*`, and an unusable value costs only the resources that have it. The settings limit the number
//! of open files; the least recently written one is closed for another. *Not done*: the number of files on disk
//! is not bounded, and no file is ever emptied.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use kubewake_config::model::GroupBy;
use kubewake_otlp::{Allowance, NoMemory, Signal, view, wire::put_bytes};
use kubewake_runtime::lock::Mutex;

use super::{
    create_directory,
    shared_file::{PathRetention, SharedFile},
};
use crate::core::Part;

/// Limit of a value in a path. File systems allow names of 255 bytes, including the text around the value.
const MAX_VALUE_BYTES: usize = 200;

/// Mode of directories in values, where the settings give none.
const DIRECTORY_MODE: u32 = 0o700;

/// Memory for each file while a batch is grouped, beside its name and its data.
const GROUP_OVERHEAD_BYTES: usize = 256;

/// The files of one exporter.
pub(super) struct FileGroups {
    before: String,
    after: String,
    attribute: String,
    mode: u32,
    max_open: usize,
    /// Open files by path; the most recently written one is the last.
    open: Mutex<Vec<(PathBuf, Arc<SharedFile>)>>,
}

/// A request, divided by file.
#[derive(Default)]
pub(super) struct GroupedRequests {
    /// A request for each file, with its number of items.
    pub(super) requests: BTreeMap<PathBuf, (Vec<u8>, usize)>,
    /// Items without a file.
    pub(super) ungrouped_items: usize,
}

impl FileGroups {
    /// The groups of a path with a `*`. The common parent directory is created here.
    pub(super) fn new(path: &Path, settings: &GroupBy, mode: Option<u32>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let text = path.to_str().and_then(|text| text.split_once('*'));
        let (before, after) = text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path has no *"))?;
        let groups = Self {
            before: before.to_owned(),
            after: after.to_owned(),
            attribute: settings.resource_attribute.clone(),
            mode: mode.unwrap_or(DIRECTORY_MODE),
            max_open: usize::try_from(settings.max_open_files).unwrap_or(usize::MAX),
            open: Mutex::default(),
        };
        create_directory(Path::new(&format!("{before}_")), groups.mode)?;
        Ok(groups)
    }

    /// The attribute whose value selects the file.
    pub(super) fn attribute(&self) -> &str {
        &self.attribute
    }

    /// Divides the resources of a request by file. The new requests together are as large as this one, whose
    /// charge covers them; but a file name may be longer than a resource.
    ///
    /// # Errors
    ///
    /// If there is no memory for the names.
    pub(super) fn group_request(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<GroupedRequests, NoMemory> {
        let mut requests: BTreeMap<PathBuf, (Vec<u8>, usize)> = BTreeMap::new();
        for entry in view::resources(&part.bytes) {
            let resource = entry.resource();
            let value = resource.attributes().text(&self.attribute).and_then(|value| str::from_utf8(value).ok());
            if let Some(path) = value.and_then(|value| self.path_for_value(value)) {
                let size = path.as_os_str().len() + GROUP_OVERHEAD_BYTES;
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
        Ok(GroupedRequests { requests, ungrouped_items: left })
    }

    /// The path for a value, if the value is usable.
    fn path_for_value(&self, value: &str) -> Option<PathBuf> {
        if value.len() > MAX_VALUE_BYTES || value.contains('\0') {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in value.split('/') {
            match part {
                "" | "." => {}
                // Not above the directory of the value.
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        Some(PathBuf::from(format!("{}{}{}", self.before, parts.join("/"), self.after)))
    }

    /// Opens a file, unless it is open.
    pub(super) fn open(&self, path: &Path) -> io::Result<Arc<SharedFile>> {
        let mut open = self.open.lock();
        let sink = match open.iter().position(|(known, _)| known == path) {
            Some(at) => open.remove(at).1,
            None => {
                create_directory(path, self.mode)?;
                SharedFile::for_path(path, PathRetention::WhileUsed)?
            }
        };
        if open.len() >= self.max_open {
            // A current write still holds the file, and closes it at its end.
            open.remove(0);
        }
        open.push((path.to_owned(), sink.clone()));
        Ok(sink)
    }
}

/// Whether an error is permanent, because of the value in the path.
pub(super) fn is_permanent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    // `mkdir` reports "already exists" for a path that is a file.
    let hopeless = [InvalidFilename, InvalidInput, IsADirectory, NotADirectory, io::ErrorKind::AlreadyExists];
    hopeless.contains(&error.kind())
}

#[cfg(test)]
mod tests;
