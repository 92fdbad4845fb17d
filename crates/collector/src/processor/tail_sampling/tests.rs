//! The processor as a whole, on a paused clock.

mod decisions;
mod hostile;
mod limits;
mod model;
mod property;
mod reload;
mod support;
