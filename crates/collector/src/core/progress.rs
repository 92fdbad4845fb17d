//! Whether something gets on: the failures since the last success, and since when.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::{ErrorClass, Said, SendError};

/// How attempts to deliver have been going.
#[derive(Debug)]
pub struct Progress(Mutex<Course>);

/// A look at a [`Progress`] at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// The class of the last error, also after a success.
    pub last_error: ErrorClass,
    /// What the destination said in it, if it answered.
    pub last_said: Option<Said>,
    /// Whether it was final: what was sent is not sent again.
    pub is_final: bool,
    /// Failed attempts since the last success.
    pub failures: u64,
    /// When something was delivered last.
    pub last_success: Option<Instant>,
    /// When an attempt failed last.
    pub last_failure: Option<Instant>,
    /// The first failure since the last success.
    pub failing_since: Option<Instant>,
}

impl Default for Progress {
    fn default() -> Self {
        Self(Mutex::new(Course {
            last_error: ErrorClass::None,
            last_said: None,
            is_final: false,
            failures: 0,
            last_success: None,
            last_failure: None,
            failing_since: None,
        }))
    }
}

impl Progress {
    /// Something was delivered.
    pub fn succeeded(&self) {
        let mut course = self.lock();
        course.failures = 0;
        course.failing_since = None;
        course.last_success = Some(Instant::now());
    }

    /// An attempt failed.
    pub fn failed(&self, error: &SendError) {
        let now = Instant::now();
        let mut course = self.lock();
        course.last_error = error.class;
        course.last_said = error.said;
        course.is_final = !error.retryable;
        course.failures += 1;
        course.last_failure = Some(now);
        course.failing_since.get_or_insert(now);
    }

    /// Something is in the way, and nothing was there to be sent.
    pub fn obstructed(&self, error: &SendError) {
        let mut course = self.lock();
        course.last_error = error.class;
        course.last_said = error.said;
        course.last_failure = Some(Instant::now());
    }

    /// What was in the way of every attempt is gone; nothing was delivered yet.
    pub fn unobstructed(&self) {
        let mut course = self.lock();
        course.failures = 0;
        course.failing_since = None;
    }

    /// How it stands.
    pub fn course(&self) -> Course {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Course> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
