//! Receivers.

use std::{future::Future, pin::Pin};

#[cfg(feature = "receiver-otlp")]
pub mod otlp;

/// A running receiver.
pub trait Receiver: Send + Sync {
    /// Stops taking requests, lets those under way end, and ends when the last connection is gone.
    fn stop(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
