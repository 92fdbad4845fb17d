//! `filter`: which records are dropped.

use super::MatchProperties;

/// `filter`
///
/// Without `include` every record is kept, otherwise only records that match one of it. Records that match one
/// of `exclude` are always dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterProcessor {
    pub spans: RecordSelection,
    pub metrics: RecordSelection,
    pub logs: RecordSelection,
}

/// The records to keep, and exceptions from these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSelection {
    pub include: Vec<MatchProperties>,
    /// `exclude`. For metrics a name and a resource attribute each exclude by themselves.
    pub exclude: Vec<MatchProperties>,
}
