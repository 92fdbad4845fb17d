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
    until_ok(|| value().ok_or_else(|| what.to_owned()))
}

/// Waits until an attempt succeeds, and fails with what the last one said.
pub fn until_ok<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(what) => assert!(started.elapsed() < DEADLINE, "never came true: {what}"),
        }
        thread::sleep(POLL);
    }
}
