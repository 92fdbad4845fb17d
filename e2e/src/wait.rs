//! Waiting for conditions.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::cluster::KUBECONFIG_VARIABLE;

/// Only a broken system exceeds this, on however slow a machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// The same on a cluster that is not the story's own, where images are pulled.
const EXTERNAL_CLUSTER_TIMEOUT: Duration = Duration::from_secs(180);
/// Short compared with any wait, and cheap.
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// Waits until `condition` holds, and fails with `what` if it never does.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Waits until `value` returns one.
pub fn wait_for<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    wait_for_ok(|| value().ok_or_else(|| what.to_owned()))
}

/// Waits until an attempt succeeds, and fails with the last error.
pub fn wait_for_ok<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let deadline =
        if std::env::var_os(KUBECONFIG_VARIABLE).is_some() { EXTERNAL_CLUSTER_TIMEOUT } else { WAIT_TIMEOUT };
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(what) => assert!(started.elapsed() < deadline, "timed out while waiting until {what}"),
        }
        thread::sleep(POLL_INTERVAL);
    }
}
