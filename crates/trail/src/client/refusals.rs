//! Counts requests that are refused repeatedly, so that fewer and fewer of them are recorded.
//!
//! A request is identified by the object and generation of its run, its method, its path and the name of its
//! object. Its body does not count: a context in it differs each time.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Requests whose last response was a refusal; about 30 bytes each. An evicted request counts from one again.
const MAX_REQUESTS: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct RefusalCounter(Mutex<HashMap<u64, u32>>);

impl RefusalCounter {
    /// Whether the next response is worth a record even if it is a refusal: the 1st, 2nd, 4th, 8th, …
    /// consecutive refusal is.
    pub(crate) fn is_due(&self, request: u64) -> bool {
        self.requests().get(&request).is_none_or(|times| times.saturating_add(1).is_power_of_two())
    }

    pub(crate) fn record_refusal(&self, request: u64) {
        let mut requests = self.requests();
        if requests.len() >= MAX_REQUESTS
            && !requests.contains_key(&request)
            && let Some(any) = requests.keys().next().copied()
        {
            requests.remove(&any);
        }
        let times = requests.entry(request).or_default();
        *times = times.saturating_add(1);
    }

    pub(crate) fn record_success(&self, request: u64) {
        self.requests().remove(&request);
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::RefusalCounter;

    #[test]
    fn a_request_is_due_ever_more_seldom_until_it_is_taken() {
        let refusals = RefusalCounter::default();
        let due = |times: u32| {
            let due = |time: &u32| {
                let due = refusals.is_due(7);
                refusals.record_refusal(7);
                due.then_some(*time).is_some()
            };
            (1..=times).filter(due).collect::<Vec<_>>()
        };
        assert_eq!(due(20), [1, 2, 4, 8, 16]);
        assert!(refusals.is_due(8), "another one");
        refusals.record_success(7);
        assert_eq!(due(3), [1, 2]);
    }
}
