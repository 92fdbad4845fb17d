//! How many requests are served at once: kube-apiserver's `--max-requests-inflight` and `--max-mutating-requests-inflight`.
//!
//! Long-running requests (watches, proxies, `exec`, `log` and the like) are not counted. Members of `system:masters` are counted, but
//! never refused, so that an administrator gets through. Requests above the limit are refused at once, as kube-apiserver does without
//! priority and fairness: plain text, and a hint to come back in a second.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use super::call::Call;

/// kube-apiserver's defaults.
pub const MAX_READS: usize = 400;
/// The same, for requests that change something.
pub const MAX_WRITES: usize = 200;

/// What is said to whom there is no place for.
pub const TOO_MANY: &str = "Too many requests, please try again later.\n";
/// When to come back, in seconds.
pub const RETRY_AFTER: u32 = 1;

/// How long a place is held at most by an answer that its reader does not take: kube-apiserver's `--request-timeout`.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Subresources whose requests last.
const LONG_RUNNING: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

/// Places for requests.
#[derive(Debug)]
pub struct InFlightLimits {
    reads: Option<Arc<Semaphore>>,
    writes: Option<Arc<Semaphore>>,
}

/// The place of a request; none where it needs none.
#[derive(Debug, Default)]
pub struct Place(Option<OwnedSemaphorePermit>);

/// Keeps a place until it is dropped, and no longer than a request may last.
#[derive(Debug)]
pub struct HeldPlace(#[expect(dead_code, reason = "its end is the signal")] oneshot::Sender<()>);

impl InFlightLimits {
    /// So many requests at once; zero is no limit.
    pub fn new(reads: usize, writes: usize) -> Self {
        let places = |most: usize| (most > 0).then(|| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        Self { reads: places(reads), writes: places(writes) }
    }

    /// A place for a request, if there is one.
    pub fn admit(&self, call: &Call) -> Option<Place> {
        let is_read = matches!(call.info.verb, "get" | "list" | "watch");
        let places = if is_read { &self.reads } else { &self.writes };
        let Some(places) = places.as_ref().filter(|_| !is_long_running(call)) else { return Some(Place::default()) };
        match Arc::clone(places).try_acquire_owned() {
            Ok(permit) => Some(Place(Some(permit))),
            Err(_) => call.user.groups.iter().any(|group| &**group == "system:masters").then(Place::default),
        }
    }
}

/// Whether a request lasts as long as its caller likes.
pub fn is_long_running(call: &Call) -> bool {
    let subresource = call.info.resource.as_ref().map_or("", |path| path.subresource.as_str());
    matches!(call.info.verb, "watch" | "proxy") || LONG_RUNNING.contains(&subresource)
}

impl Place {
    /// Keeps the place while an answer is written.
    pub fn hold(self) -> Option<HeldPlace> {
        let Self(permit) = self;
        let permit = permit?;
        let (held, released) = oneshot::channel();
        tokio::spawn(async move {
            // Both ends are the same: the answer is written or dropped, or it took too long.
            let _ = timeout(REQUEST_TIMEOUT, released).await;
            drop(permit);
        });
        Some(HeldPlace(held))
    }
}
