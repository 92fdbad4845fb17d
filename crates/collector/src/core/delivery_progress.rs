//! The record of delivery attempts: failures since the last success, and since when they last.

use std::sync::MutexGuard;

use kubewake_runtime::lock::Mutex;
use tokio::time::Instant;

use super::{BackendStatus, ErrorClass, SendError};

/// The outcome of recent attempts to deliver.
#[derive(Debug)]
pub struct DeliveryProgress(Mutex<DeliverySnapshot>);

/// The state of a [`DeliveryProgress`] at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySnapshot {
    /// The class of the last error, kept after a success.
    pub last_error: ErrorClass,
    /// The status of the last error, if the destination responded.
    pub last_status: Option<BackendStatus>,
    /// Whether the last error was final: the data is not sent again.
    pub is_final: bool,
    pub failures: u64,
    /// When data was last delivered.
    pub last_success: Option<Instant>,
    /// When an attempt last failed.
    pub last_failure: Option<Instant>,
    /// When the first failure since the last success was.
    pub failing_since: Option<Instant>,
}

impl Default for DeliveryProgress {
    fn default() -> Self {
        Self(Mutex::new(DeliverySnapshot {
            last_error: ErrorClass::None,
            last_status: None,
            is_final: false,
            failures: 0,
            last_success: None,
            last_failure: None,
            failing_since: None,
        }))
    }
}

impl DeliveryProgress {
    pub fn record_success(&self) {
        let mut course = self.lock();
        course.failures = 0;
        course.failing_since = None;
        course.last_success = Some(Instant::now());
    }

    pub fn record_failure(&self, error: &SendError) {
        let now = Instant::now();
        let mut course = self.lock();
        course.last_error = error.class;
        course.last_status = error.backend_status;
        course.is_final = !error.retryable;
        course.failures += 1;
        course.last_failure = Some(now);
        course.failing_since.get_or_insert(now);
    }

    /// Records a failure that prevents attempts while there is nothing to send.
    pub fn record_obstruction(&self, error: &SendError) {
        let mut course = self.lock();
        course.last_error = error.class;
        course.last_status = error.backend_status;
        course.last_failure = Some(Instant::now());
    }

    /// Records that the cause of all failed attempts is gone, before anything was delivered.
    pub fn clear_obstruction(&self) {
        let mut course = self.lock();
        course.failures = 0;
        course.failing_since = None;
    }

    pub fn snapshot(&self) -> DeliverySnapshot {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, DeliverySnapshot> {
        self.0.lock()
    }
}
