//! A Deployment that is resized in the middle of a rollout: each ReplicaSet changes by its share, so that the risk stays what it was.

use super::limits::Limits;

/// A ReplicaSet with pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub size: i64,
    /// The most pods that the Deployment could have when this was last scaled, if that is known.
    pub most: Option<i64>,
}

/// The sizes of the parts, of which the first takes what rounding leaves. There are `actual` pods now.
pub(super) fn sizes(limits: &Limits, parts: &[Part], actual: i64) -> Vec<i64> {
    let allowed = if limits.replicas > 0 { limits.most() } else { 0 };
    let change = allowed - parts.iter().map(|part| part.size).sum::<i64>();
    let mut left = change;
    let mut sizes = Vec::with_capacity(parts.len());
    for part in parts {
        let share = share(limits, *part, actual);
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

/// How much a part changes if the whole changes as it does.
fn share(limits: &Limits, part: Part, actual: i64) -> i64 {
    if limits.replicas == 0 {
        return -part.size;
    }
    // Somebody may have taken the annotation away.
    let before = part.most.filter(|most| *most > 0).unwrap_or(actual);
    if before <= 0 {
        return 0;
    }
    let scaled = i128::from(part.size) * i128::from(limits.most());
    let rounded = (2 * scaled + i128::from(before)) / (2 * i128::from(before));
    i64::try_from(rounded).unwrap_or(i64::MAX) - part.size
}

#[cfg(test)]
mod tests;
