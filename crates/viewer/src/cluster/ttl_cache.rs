//! A cache that shares results: equal queries at the same time, or within the TTL, get one result. Several open
//! pages cost a cluster no more than one.
//!
//! *Guaranteed.* The next query removes expired entries. When the caller that runs a query is cancelled, the
//! next one that waits for it takes over.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use kubewake_runtime::lock::Mutex;
use tokio::sync::OnceCell;

/// How long a result is valid. The page repeats its queries every three seconds.
const TTL: Duration = Duration::from_secs(1);

/// A result with the time of its arrival, once it has arrived.
type CachedValue<V> = Arc<OnceCell<(Instant, V)>>;

pub(super) struct TtlCache<K, V> {
    fresh: Duration,
    all: Mutex<HashMap<K, CachedValue<V>>>,
}

impl<K, V> Default for TtlCache<K, V> {
    fn default() -> Self {
        Self { fresh: TTL, all: Mutex::default() }
    }
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    /// Returns the cached result, waits for the one that is under way, or calls `ask`.
    pub(super) async fn get_or_fetch<F: Future<Output = V>>(&self, question: K, ask: impl FnOnce() -> F) -> V {
        let answer = {
            let mut all = self.all.lock();
            all.retain(|_, answer| match answer.get() {
                Some((came, _)) => came.elapsed() < self.fresh,
                None => Arc::strong_count(answer) > 1,
            });
            all.entry(question).or_default().clone()
        };
        let ask = async || {
            let answer = ask().await;
            (Instant::now(), answer)
        };
        answer.get_or_init(ask).await.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn who_asks_the_same_within_a_moment_gets_the_same() {
        let asked = AtomicUsize::new(0);
        let ask = async || asked.fetch_add(1, Ordering::Relaxed);
        let mut recent = TtlCache { fresh: Duration::from_secs(3600), ..TtlCache::default() };
        assert_eq!(
            (
                recent.get_or_fetch("a", ask).await,
                recent.get_or_fetch("a", ask).await,
                recent.get_or_fetch("b", ask).await
            ),
            (0, 0, 1)
        );
        recent.fresh = Duration::ZERO;
        assert_eq!(recent.get_or_fetch("a", ask).await, 2);
        assert_eq!(recent.all.lock().len(), 1, "nothing else is kept");
    }

    #[tokio::test]
    async fn who_asks_at_once_waits_for_the_same() {
        let recent = TtlCache::default();
        let asked = AtomicUsize::new(0);
        let answer = Notify::new();
        let ask = async || {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            answer.notified().await;
            number
        };
        // A caller that is cancelled leaves the query to the others.
        let gone = tokio::time::timeout(Duration::ZERO, recent.get_or_fetch("a", ask)).await;
        assert!(gone.is_err());
        let (one, other, ()) =
            tokio::join!(recent.get_or_fetch("a", ask), recent.get_or_fetch("a", ask), async { answer.notify_one() });
        assert_eq!((one, other, asked.into_inner()), (1, 1, 2));
    }
}
