//! OTLP on the wire.

mod signal;

pub use signal::Signal;
