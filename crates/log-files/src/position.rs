//! Where an output is in a log.
//!
//! *Guarantees*: a position of one stream is greater than every position before it, also across rotations, truncations
//! and restarts.

use std::fmt;

/// The largest number of outputs of one `LogFiles`. A set of outputs is one machine word wide.
pub const MAX_OUTPUTS: usize = 64;

/// One log with all of its generations. The number is kept across restarts while the checkpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// An output, by its index in the names given to `LogFiles::open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId(pub u8);

/// A cursor over one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(pub u64);

/// A place between two bytes of a stream: the generation, and the number of (uncompressed) bytes before it there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    pub generation: u64,
    pub offset: u64,
}

impl LogPosition {
    pub const fn new(generation: u64, offset: u64) -> Self {
        Self { generation, offset }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.generation, self.offset)
    }
}

/// A set of outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct OutputSet(u64);

impl OutputSet {
    pub const EMPTY: Self = Self(0);

    pub fn contains(self, output: OutputId) -> bool {
        self.0 & bit(output) != 0
    }

    pub fn insert(&mut self, output: OutputId) {
        self.0 |= bit(output);
    }

    pub fn remove(&mut self, output: OutputId) {
        self.0 &= !bit(output);
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = OutputId> {
        (0..MAX_OUTPUTS as u8).map(OutputId).filter(move |output| self.contains(*output))
    }
}

impl FromIterator<OutputId> for OutputSet {
    fn from_iter<I: IntoIterator<Item = OutputId>>(outputs: I) -> Self {
        let mut set = Self::EMPTY;
        for output in outputs {
            set.insert(output);
        }
        set
    }
}

/// An output beyond the bound is in no set.
fn bit(output: OutputId) -> u64 {
    1u64.checked_shl(u32::from(output.0)).unwrap_or(0)
}
