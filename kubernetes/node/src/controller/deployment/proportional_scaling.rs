//! Scaling of a Deployment during a rollout: each ReplicaSet changes in proportion to its size, so that the
//! risk of the rollout stays the same.

use super::limits::RolloutLimits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplicaSetShare {
    pub size: i64,
    /// The upper limit of the Deployment when this set was last scaled, if it is known.
    pub max_replicas: Option<i64>,
}

/// The new sizes of the ReplicaSets; the first one gets the rest of the rounding. `actual` pods exist now.
pub(super) fn proportional_sizes(limits: &RolloutLimits, parts: &[ReplicaSetShare], actual: i64) -> Vec<i64> {
    let allowed = if limits.replicas > 0 { limits.max_total() } else { 0 };
    let change = allowed - parts.iter().map(|part| part.size).sum::<i64>();
    let mut left = change;
    let mut sizes = Vec::with_capacity(parts.len());
    for part in parts {
        let share = size_change(limits, *part, actual);
        let share = if change > 0 { share.min(left) } else { share.max(left) };
        let share = if left == 0 || part.size == 0 { 0 } else { share };
        left -= share;
        sizes.push(part.size + share);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + left).max(0);
    }
    sizes
}

/// The change of one ReplicaSet in proportion to the change of the whole.
fn size_change(limits: &RolloutLimits, part: ReplicaSetShare, actual: i64) -> i64 {
    if limits.replicas == 0 {
        return -part.size;
    }
    // The annotation may have been removed by somebody.
    let before = part.max_replicas.filter(|most| *most > 0).unwrap_or(actual);
    if before <= 0 {
        return 0;
    }
    let scaled = i128::from(part.size) * i128::from(limits.max_total());
    let rounded = (2 * scaled + i128::from(before)) / (2 * i128::from(before));
    i64::try_from(rounded).unwrap_or(i64::MAX) - part.size
}

#[cfg(test)]
mod tests;
