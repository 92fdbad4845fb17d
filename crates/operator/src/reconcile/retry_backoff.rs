//! The delays of retries: each failure of a pipeline in a row doubles them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::MutexGuard,
    time::Duration,
};

use kubewake_runtime::lock::Mutex;

/// The first delay after a failure.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest delay: the time that a user waits after fixing something.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Consecutive failures, by the uid of the pipeline.
#[derive(Debug, Default)]
pub struct RetryBackoff(Mutex<HashMap<String, u32>>);

impl RetryBackoff {
    /// Counts a failure, and returns the delay before the next attempt. Entries of deleted pipelines are dropped when
    /// another pipeline begins to fail.
    pub fn record_failure(&self, uid: &str, live_uids: impl FnOnce() -> BTreeSet<String>) -> Duration {
        let mut failures = self.failures();
        if !failures.contains_key(uid) {
            let live_uids = live_uids();
            failures.retain(|uid, _| live_uids.contains(uid));
        }
        let count = failures.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        let doublings = (*count).min(10) - 1;
        (MIN_RETRY_DELAY * 2_u32.pow(doublings)).min(MAX_RETRY_DELAY)
    }

    pub fn reset(&self, uid: &str) {
        self.failures().remove(uid);
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_its_limit_and_starts_again_after_a_success() {
        let backoff = RetryBackoff::default();
        let fail = || backoff.record_failure("uid", BTreeSet::new);
        assert_eq!([fail(), fail(), fail()].map(|delay| delay.as_millis()), [500, 1000, 2000]);
        (0..100).for_each(|_| _ = fail());
        assert_eq!(fail(), MAX_RETRY_DELAY);
        backoff.reset("uid");
        assert_eq!(fail(), MIN_RETRY_DELAY);
        backoff.record_failure("other", || BTreeSet::from(["other".to_owned()]));
        assert_eq!(backoff.failures().keys().collect::<Vec<_>>(), ["other"], "the first pipeline is gone");
    }
}
