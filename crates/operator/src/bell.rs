//! Says that something has happened after which pipelines are to be looked at again.
//!
//! Whatever it was, all pipelines are looked at: that is cheap where nothing comes of it. Strokes that follow each other closely are one.

use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::sync::watch;

/// What belongs together arrives within this time, and nobody notices that it passed.
const TOGETHER: Duration = Duration::from_millis(25);

/// Rings. A clone is the same one.
#[derive(Clone, Debug)]
pub struct Bell(watch::Sender<u64>);

impl Default for Bell {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Bell {
    /// Something has happened.
    pub fn ring(&self) {
        self.0.send_modify(|strokes| *strokes = strokes.wrapping_add(1));
    }

    /// Rings whenever this changes, as long as it can.
    pub async fn ring_on(self, mut changes: watch::Receiver<u64>) {
        while changes.changed().await.is_ok() {
            self.ring();
        }
    }

    /// Everything that happens from now on. It ends with the last bell.
    pub fn strokes(&self) -> impl Stream<Item = ()> + Send + use<> {
        stream::unfold(self.0.subscribe(), |mut heard| async {
            heard.changed().await.ok()?;
            tokio::time::sleep(TOGETHER).await;
            heard.mark_unchanged();
            Some(((), heard))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_rings_at_once_is_heard_once() {
        let bell = Bell::default();
        let mut strokes = std::pin::pin!(bell.strokes());
        bell.ring();
        bell.ring();
        assert_eq!(strokes.next().await, Some(()));
        assert_eq!(strokes.next().now_or_never(), None, "nothing was left over");
        bell.ring();
        assert_eq!(strokes.next().await, Some(()));
    }
}
