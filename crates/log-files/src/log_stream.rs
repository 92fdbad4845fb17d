//! One log with its generations in order.

use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
};

use crate::{
    file_content::{ContentIdentity, FileContent},
    generation::Generation,
    open_file::FileDescription,
    position::{LogPosition, OutputId, ReaderId, StreamId},
};

/// More rotated files than a kubelet keeps by default.
const MAX_REMEMBERED_GENERATIONS: usize = 8;

/// How the files of a log follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogLayout {
    /// The log of one run of a container, which the kubelet rotates.
    Kubelet,
    /// A file by itself, under whatever name. It has a new generation after it was truncated.
    Plain,
}

/// One log with all of its generations.
#[derive(Debug)]
pub struct LogStream {
    pub(crate) id: StreamId,
    pub(crate) layout: LogLayout,
    pub(crate) path: PathBuf,
    /// At least one, in order.
    pub(crate) generations: VecDeque<Generation>,
    /// By output.
    pub(crate) committed: Vec<LogPosition>,
    /// What was reported as lost: by output and generation, from which offset on.
    pub(crate) reported: HashMap<(OutputId, u64), u64>,
    pub(crate) readers: Vec<ReaderId>,
    /// A later run of the container has begun.
    pub(crate) is_superseded: bool,
    /// No byte will follow.
    pub(crate) is_ended: bool,
    /// The newest rotation that was seen; older files that turn up later have been dealt with.
    pub(crate) last_rotation: Option<String>,
    /// Files were missed behind the last generation, so that a number is left out.
    pub(crate) has_gap: bool,
    /// Generations that were dealt with last, whose files may turn up under names that were not seen yet.
    pub(crate) done: VecDeque<ContentIdentity>,
}

/// Where a position is among the generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PositionPlace {
    /// In a generation before the first one, which all outputs have committed.
    Before,
    At(usize),
    /// Behind the last one.
    Behind,
}

impl LogStream {
    pub(crate) fn new(id: StreamId, layout: LogLayout, path: PathBuf, outputs: usize) -> Self {
        Self {
            id,
            layout,
            path,
            generations: VecDeque::new(),
            committed: vec![LogPosition::default(); outputs],
            reported: HashMap::new(),
            readers: Vec::new(),
            is_superseded: false,
            is_ended: false,
            last_rotation: None,
            has_gap: false,
            done: VecDeque::new(),
        }
    }

    pub fn id(&self) -> StreamId {
        self.id
    }

    pub fn layout(&self) -> LogLayout {
        self.layout
    }

    /// The path of the live file, as its directory and name matched; of a file without a name, the last one.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file that has this position: of a rotated file it is another one than that of the stream.
    pub fn path_at(&self, position: LogPosition) -> Option<&Path> {
        let generation = self.generations.iter().find(|generation| generation.number == position.generation)?;
        generation.slots().find_map(|slot| slot.name.as_ref()).map(|name| name.path.as_path())
    }

    /// What the file system says of the file that has this position; `None` if it is not open.
    pub fn describe_file(&self, position: LogPosition) -> Option<FileDescription> {
        let generation = self.generations.iter().find(|generation| generation.number == position.generation)?;
        generation.slots().find_map(|slot| slot.handle.as_ref())?.describe()
    }

    /// A value that tells the content of a generation from that of others, also after its positions were forgotten:
    /// a hash of its first line. `None` while that is not complete.
    pub fn fingerprint(&self, generation: u64) -> Option<u64> {
        self.generations.iter().find(|found| found.number == generation)?.first_line
    }

    /// Whether no byte will follow: the file is gone, or a later run of the container has begun.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Where an output is; the position that a restart would continue from.
    pub fn committed(&self, output: OutputId) -> Option<LogPosition> {
        self.committed.get(usize::from(output.0)).copied()
    }

    /// The end of what was seen of the log.
    pub fn end(&self) -> LogPosition {
        self.generations.back().map(Generation::last_position).unwrap_or_default()
    }

    /// The known bytes behind a position.
    pub fn bytes_after(&self, position: LogPosition) -> u64 {
        let after = self.generations.iter().filter(|generation| generation.number >= position.generation);
        after
            .map(|generation| {
                let from = if generation.number == position.generation { position.offset } else { generation.start };
                generation.size.saturating_sub(from)
            })
            .sum()
    }

    pub(crate) fn place_of(&self, position: LogPosition) -> PositionPlace {
        match self.generations.iter().position(|generation| generation.number >= position.generation) {
            Some(index) if self.generations.get(index).is_some_and(|found| found.number == position.generation) => {
                PositionPlace::At(index)
            }
            Some(_) => PositionPlace::Before,
            None => PositionPlace::Behind,
        }
    }

    pub(crate) fn generation_mut(&mut self, number: u64) -> Option<&mut Generation> {
        self.generations.iter_mut().find(|generation| generation.number == number)
    }

    /// The position that all outputs have committed.
    pub(crate) fn first_needed(&self) -> LogPosition {
        self.committed.iter().min().copied().unwrap_or_else(|| self.end())
    }

    pub(crate) fn note_done(&mut self, done: &Generation) {
        self.done.push_back(done.identity());
        if self.done.len() > MAX_REMEMBERED_GENERATIONS {
            self.done.pop_front();
        }
    }

    /// Whether the file is one that was dealt with.
    pub(crate) fn has_done(&self, file: &mut FileContent) -> bool {
        self.done.iter().any(|done| done.is_of(file).unwrap_or(false))
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.generations.back().map_or(0, |generation| generation.number + 1 + u64::from(self.has_gap))
    }
}
