//! Requests a reconcile of all pipelines.
//!
//! A trigger does not name the pipeline that changed: reconciling one that is up to date is cheap. Triggers
//! within `DEBOUNCE` are coalesced.

use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::sync::watch;

/// Related changes arrive within this time, and nobody notices the delay.
const DEBOUNCE: Duration = Duration::from_millis(25);

/// A clone triggers the same subscribers.
#[derive(Clone, Debug)]
pub struct ResyncTrigger(watch::Sender<u64>);

impl Default for ResyncTrigger {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl ResyncTrigger {
    pub fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Triggers on each change of a counter, until its sender is dropped.
    pub async fn notify_on_change(self, mut changes: watch::Receiver<u64>) {
        while changes.changed().await.is_ok() {
            self.notify();
        }
    }

    /// The triggers from now on, coalesced. The stream ends when the last trigger is dropped.
    pub fn subscribe(&self) -> impl Stream<Item = ()> + Send + use<> {
        stream::unfold(self.0.subscribe(), |mut changes| async {
            changes.changed().await.ok()?;
            tokio::time::sleep(DEBOUNCE).await;
            changes.mark_unchanged();
            Some(((), changes))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn triggers_at_once_are_coalesced() {
        let resync_trigger = ResyncTrigger::default();
        let mut triggers = std::pin::pin!(resync_trigger.subscribe());
        resync_trigger.notify();
        resync_trigger.notify();
        assert_eq!(triggers.next().await, Some(()));
        assert_eq!(triggers.next().now_or_never(), None, "nothing was left over");
        resync_trigger.notify();
        assert_eq!(triggers.next().await, Some(()));
    }
}
