//! Records that a destination rejects for good although it took the request that they were in.

use kubewake_runtime::label_enum;

label_enum! {
    /// Why a destination rejected a record, classified by where to look for the cause.
    pub enum RejectReason {
        /// A field does not have the type that the destination expects, or there are too many fields.
        Mapping => "mapping",
        /// The record is larger than the destination allows.
        TooLarge => "too_large",
        /// The record is older or newer than the destination allows, or out of order.
        Time => "time",
        /// The destination takes only so much, and did not ask to send the record again.
        RateLimit => "rate_limit",
        /// There are too many labels, or too many streams.
        Cardinality => "cardinality",
        /// The index, tenant or stream is not valid, does not exist, or may not be written.
        Target => "target",
        /// The destination gives no reason, or one that is not known here.
        Other => "other",
    }
}

/// The number of rejected items by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectionCounts([u64; RejectReason::ALL.len()]);

impl RejectionCounts {
    /// So many items, rejected for this reason.
    pub fn from_reason(reason: RejectReason, items: u64) -> Self {
        let mut counts = Self::default();
        counts.add(reason, items);
        counts
    }

    /// Adds items that were rejected for this reason.
    pub fn add(&mut self, reason: RejectReason, items: u64) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count = count.saturating_add(items);
        }
    }

    /// The number of all rejected items.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |total, count| total.saturating_add(*count))
    }

    /// The reasons for which anything was rejected, with the number of items.
    pub fn iter(&self) -> impl Iterator<Item = (RejectReason, u64)> + '_ {
        RejectReason::ALL.iter().copied().zip(self.0).filter(|(_, items)| *items > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_reason() {
        let mut counts = RejectionCounts::from_reason(RejectReason::Other, 2);
        counts.add(RejectReason::Mapping, 1);
        counts.add(RejectReason::Other, u64::MAX);
        let by_reason: Vec<_> = counts.iter().collect();
        assert_eq!(by_reason, [(RejectReason::Mapping, 1), (RejectReason::Other, u64::MAX)]);
        assert_eq!(counts.total(), u64::MAX, "a number from a destination may be any");
    }
}
