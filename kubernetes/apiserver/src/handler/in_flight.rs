//! Limits of concurrent requests: kube-apiserver's `--max-requests-inflight` and
//! `--max-mutating-requests-inflight`.
//!
//! Long-running requests (watches, proxies, `exec`, `log` and the like) are not counted. Members of
//! `system:masters` are counted, but never refused, so that an administrator gets through. Requests above the
//! limit are refused at once, as kube-apiserver does without priority and fairness: plain text, and
//! `Retry-After` with one second.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use super::call::ApiRequest;

pub const MAX_REQUESTS_IN_FLIGHT: usize = 400;
/// The default limit of requests that write.
pub const MAX_MUTATING_REQUESTS_IN_FLIGHT: usize = 200;

/// The response to a request above the limit.
pub const TOO_MANY_REQUESTS_MESSAGE: &str = "Too many requests, please try again later.\n";
pub const RETRY_AFTER_SECONDS: u32 = 1;

/// How long a permit is held at most for a response that its client does not read: kube-apiserver's
/// `--request-timeout`.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

const LONG_RUNNING_SUBRESOURCES: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

#[derive(Debug)]
pub struct InFlightLimits {
    reads: Option<Arc<Semaphore>>,
    writes: Option<Arc<Semaphore>>,
}

/// The permit of a request; none if it needs none.
#[derive(Debug, Default)]
pub struct InFlightPermit(Option<OwnedSemaphorePermit>);

/// Keeps a permit until it is dropped, and no longer than [`REQUEST_TIMEOUT`].
#[derive(Debug)]
pub struct HeldPermit(#[expect(dead_code, reason = "dropping the sender is the signal")] oneshot::Sender<()>);

impl InFlightLimits {
    /// Limits concurrent reads and writes; zero is no limit.
    pub fn new(reads: usize, writes: usize) -> Self {
        let places = |most: usize| (most > 0).then(|| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        Self { reads: places(reads), writes: places(writes) }
    }

    /// A permit for a request, unless the limit is reached.
    pub fn admit(&self, call: &ApiRequest) -> Option<InFlightPermit> {
        let is_read = matches!(call.info.verb, "get" | "list" | "watch");
        let places = if is_read { &self.reads } else { &self.writes };
        let Some(places) = places.as_ref().filter(|_| !is_long_running(call)) else {
            return Some(InFlightPermit::default());
        };
        match Arc::clone(places).try_acquire_owned() {
            Ok(permit) => Some(InFlightPermit(Some(permit))),
            Err(_) => call.user.groups.iter().any(|group| &**group == "system:masters").then(InFlightPermit::default),
        }
    }
}

/// Whether the duration of a request is up to its caller.
pub fn is_long_running(call: &ApiRequest) -> bool {
    let subresource = call.info.resource.as_ref().map_or("", |path| path.subresource.as_str());
    matches!(call.info.verb, "watch" | "proxy") || LONG_RUNNING_SUBRESOURCES.contains(&subresource)
}

impl InFlightPermit {
    /// Keeps the permit while the response is written.
    pub fn hold_while_writing(self) -> Option<HeldPermit> {
        let Self(permit) = self;
        let permit = permit?;
        let (held, released) = oneshot::channel();
        tokio::spawn(async move {
            // Either way the permit is released: the response was written or dropped, or it took too long.
            let _ = timeout(REQUEST_TIMEOUT, released).await;
            drop(permit);
        });
        Some(HeldPermit(held))
    }
}
