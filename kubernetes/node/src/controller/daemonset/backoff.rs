//! The backoff for replacing a pod that ended: it grows with each pod of a set that ends on the same node.

use std::{collections::HashMap, time::Duration};

use kubewake_runtime::lock::Mutex;
use tokio::time::Instant;

const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
/// The longest backoff. After twice this time without an end the backoff starts anew.
const MAX_BACKOFF: Duration = Duration::from_secs(15 * 60);

/// The backoff by set and node. It may be lost: the next pod is then replaced at once.
#[derive(Debug, Default)]
pub struct FailedPodBackoff(Mutex<HashMap<(String, String), BackoffEntry>>);

#[derive(Debug)]
struct BackoffEntry {
    since: Instant,
    length: Duration,
}

impl FailedPodBackoff {
    /// Whether the pod of the set with this uid on this node may be replaced now; otherwise the remaining time.
    pub fn try_now(&self, set: &str, node: &str) -> Result<(), Duration> {
        let now = Instant::now();
        let mut pauses = self.0.lock();
        pauses.retain(|_, pause| now.duration_since(pause.since) < 2 * MAX_BACKOFF);
        let place = (set.to_owned(), node.to_owned());
        let length = match pauses.get(&place) {
            Some(pause) => match pause.length.checked_sub(now.duration_since(pause.since)) {
                Some(left) if !left.is_zero() => return Err(left),
                _ => (pause.length * 2).min(MAX_BACKOFF),
            },
            None => INITIAL_BACKOFF,
        };
        pauses.insert(place, BackoffEntry { since: now, length });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_until_a_pod_holds_out() {
        let backoff = FailedPodBackoff::default();
        assert_eq!(backoff.try_now("set", "node"), Ok(()));
        assert_eq!(backoff.try_now("set", "node"), Err(INITIAL_BACKOFF));
        assert_eq!(backoff.try_now("set", "other"), Ok(()), "each node by itself");
        tokio::time::advance(INITIAL_BACKOFF).await;
        assert_eq!(backoff.try_now("set", "node"), Ok(()));
        assert_eq!(backoff.try_now("set", "node"), Err(2 * INITIAL_BACKOFF));
        tokio::time::advance(2 * MAX_BACKOFF).await;
        assert_eq!(backoff.try_now("set", "node"), Ok(()));
        assert_eq!(backoff.try_now("set", "node"), Err(INITIAL_BACKOFF));
    }
}
