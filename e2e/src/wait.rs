//! Waiting for conditions.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::cluster::KUBECONFIG;

/// Only a broken system needs this long, on however slow a machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// The same on a cluster that is not the story's own, where images are pulled.
const ELSEWHERE: Duration = Duration::from_secs(180);
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
    let deadline = if std::env::var_os(KUBECONFIG).is_some() { ELSEWHERE } else { DEADLINE };
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(what) => assert!(started.elapsed() < deadline, "never came true: {what}"),
        }
        thread::sleep(POLL);
    }
}
