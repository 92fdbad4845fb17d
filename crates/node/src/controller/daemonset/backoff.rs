//! How soon a pod that ended by itself is replaced: later each time on the same node.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause. Who held out for twice as long begins anew.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The pauses on each node of each set. Nothing is lost when this is: the first pod is then replaced at once.
#[derive(Debug, Default)]
pub struct Backoff(Mutex<HashMap<(String, String), Pause>>);

#[derive(Debug)]
struct Pause {
    since: Instant,
    length: Duration,
}

impl Backoff {
    /// Whether the pod of the set with this uid on this node may be replaced now; if not, in how long.
    pub fn try_now(&self, set: &str, node: &str) -> Result<(), Duration> {
        let now = Instant::now();
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.retain(|_, pause| now.duration_since(pause.since) < 2 * LONGEST);
        let place = (set.to_owned(), node.to_owned());
        let length = match pauses.get(&place) {
            Some(pause) => match pause.length.checked_sub(now.duration_since(pause.since)) {
                Some(left) if !left.is_zero() => return Err(left),
                _ => (pause.length * 2).min(LONGEST),
            },
            None => FIRST,
        };
        pauses.insert(place, Pause { since: now, length });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_until_a_pod_holds_out() {
        let backoff = Backoff::default();
        assert_eq!(backoff.try_now("set", "node"), Ok(()));
        assert_eq!(backoff.try_now("set", "node"), Err(FIRST));
        assert_eq!(backoff.try_now("set", "other"), Ok(()), "each node by itself");
        tokio::time::advance(FIRST).await;
        assert_eq!(backoff.try_now("set", "node"), Ok(()));
        assert_eq!(backoff.try_now("set", "node"), Err(2 * FIRST));
        tokio::time::advance(2 * LONGEST).await;
        assert_eq!(backoff.try_now("set", "node"), Ok(()));
        assert_eq!(backoff.try_now("set", "node"), Err(FIRST));
    }
}
