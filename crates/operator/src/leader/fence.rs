//! How long a leader may take it that it leads.
//!
//! Whoever holds the Lease asks the API server about it now and then, and where that does not answer, knows nothing. All others see the Lease expire by their clocks. So it counts the
//! time since it last sent a renewal that was answered, and stops before that is the term of the Lease.
//!
//! *Assumed*: clocks run at the same speed, as far as a fifth of the term. *Not done*: a process that was stopped for longer than the term may send what it was about to send when it
//! wakes up.

use std::time::Duration;

use http::{Method, Request};
use kube::{Client, client::Body};
use tokio::{sync::watch, time::Instant};

/// Falls when there was no renewal for too long. A clone is the same one.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    renewed: watch::Sender<Instant>,
    limit: Duration,
}

impl Fence {
    /// Of a Lease of this term.
    pub(super) fn new(term: Duration) -> Self {
        Self { renewed: watch::Sender::new(Instant::now()), limit: term * 4 / 5 }
    }

    /// The same client, each of whose renewals counts from when it was sent.
    pub(super) fn watch(&self, client: &Client) -> Client {
        let (fence, inner) = (self.clone(), client.clone());
        let send = move |request: Request<Body>| {
            let (fence, inner, sent) = (fence.clone(), inner.clone(), Instant::now());
            // A Lease is taken, renewed and given back by patches, and by nothing else.
            let is_renewal = request.method() == Method::PATCH;
            async move {
                let response = inner.send(request).await?;
                if is_renewal && response.status().is_success() {
                    fence.renew(sent);
                }
                Ok::<_, kube::Error>(response)
            }
        };
        Client::new(tower::service_fn(send), client.default_namespace())
    }

    /// A renewal was sent then, and answered.
    pub(super) fn renew(&self, sent: Instant) {
        self.renewed.send_if_modified(|last| {
            let is_newer = sent > *last;
            *last = sent.max(*last);
            is_newer
        });
    }

    /// Waits until the last renewal is too long ago.
    pub(super) async fn fallen(&self) {
        let mut renewed = self.renewed.subscribe();
        loop {
            let until = *renewed.borrow_and_update() + self.limit;
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                // It ends only with this value itself.
                _ = renewed.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_falls_when_nothing_was_renewed_for_four_fifths_of_the_term() {
        let fence = Fence::new(Duration::from_secs(15));
        let mut fallen = std::pin::pin!(fence.fallen());
        let mut has_fallen = || fallen.as_mut().now_or_never().is_some();
        assert!(!has_fallen());
        advance(Duration::from_secs(11)).await;
        assert!(!has_fallen());
        fence.renew(Instant::now());
        assert!(!has_fallen(), "it is heard");
        advance(Duration::from_secs(11)).await;
        fence.renew(Instant::now() - Duration::from_secs(11));
        assert!(!has_fallen());
        advance(Duration::from_millis(1001)).await;
        assert!(has_fallen(), "what was sent long ago renews nothing now");
    }
}
