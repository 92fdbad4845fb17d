//! `filter`: which records are dropped.

use super::Match;

/// `filter`
///
/// Without `include` every record is kept, with it only what matches one of it. What matches one of `exclude` is dropped in any case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// `spans`
    pub spans: Selection,
    /// `metrics`
    pub metrics: Selection,
    /// `logs`
    pub logs: Selection,
}

/// What is kept, and what of it is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// `include`; none: everything.
    pub include: Vec<Match>,
    /// `exclude`. For metrics a name and a resource attribute each exclude by themselves.
    pub exclude: Vec<Match>,
}
