//! Waiting for conditions.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Only a broken system needs this long, on however slow a machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// Short beside anything that is awaited, and cheap.
const POLL: Duration = Duration::from_millis(15);

/// Waits until `condition` holds, and fails with `what` if it never does.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, || condition().then_some(()));
}

/// Waits until there is a value.
pub fn until<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(started.elapsed() < DEADLINE, "never came true: {what}");
        thread::sleep(POLL);
    }
}
