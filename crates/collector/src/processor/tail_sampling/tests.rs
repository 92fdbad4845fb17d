//! Tests of the whole processor, on a paused clock.

mod concurrent;
mod decisions;
mod examples;
mod hostile;
mod late_errors;
mod limits;
mod model;
mod property;
mod reload;
mod support;
mod weights;
