//! Answers that are shared. Whoever asks the same at once, or within a moment, gets the same: several who look cost a cluster no more than one.
//!
//! *Guaranteed.* What was asked for longer ago is forgotten with the next question. A question whose asker has gone is asked by the next who waits for it.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

use super::lock;

/// For how long an answer is good. The page asks again after three.
const FRESH: Duration = Duration::from_secs(1);

/// An answer, and when it came, if it did.
type Answer<V> = Arc<OnceCell<(Instant, V)>>;

pub(super) struct Recent<K, V> {
    fresh: Duration,
    all: Mutex<HashMap<K, Answer<V>>>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { fresh: FRESH, all: Mutex::default() }
    }
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    /// The answer, which is asked for unless it is there or on its way.
    pub(super) async fn get<F: Future<Output = V>>(&self, question: K, ask: impl FnOnce() -> F) -> V {
        let answer = {
            let mut all = lock(&self.all);
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
        let mut recent = Recent { fresh: Duration::from_secs(3600), ..Recent::default() };
        assert_eq!((recent.get("a", ask).await, recent.get("a", ask).await, recent.get("b", ask).await), (0, 0, 1));
        recent.fresh = Duration::ZERO;
        assert_eq!(recent.get("a", ask).await, 2);
        assert_eq!(lock(&recent.all).len(), 1, "nothing else is kept");
    }

    #[tokio::test]
    async fn who_asks_at_once_waits_for_the_same() {
        let (recent, asked, answer) = (Recent::default(), AtomicUsize::new(0), Notify::new());
        let ask = async || {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            answer.notified().await;
            number
        };
        // Somebody who asks and goes leaves the question to the others.
        let gone = tokio::time::timeout(Duration::ZERO, recent.get("a", ask)).await;
        assert!(gone.is_err());
        let (one, other, ()) = tokio::join!(recent.get("a", ask), recent.get("a", ask), async { answer.notify_one() });
        assert_eq!((one, other, asked.into_inner()), (1, 1, 2));
    }
}
