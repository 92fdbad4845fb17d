//! Receivers.

use std::{future::Future, pin::Pin};

mod activity;
mod body;
mod calls;
mod cors;
mod discard;
mod intake;
#[cfg(feature = "receiver-opencensus")]
pub mod opencensus;
#[cfg(feature = "receiver-otlp")]
pub mod otlp;
mod port;
mod rpc_status;
mod senders;
mod timers;

/// A running receiver.
pub trait Receiver: Send + Sync {
    /// Stops taking requests; those under way may end.
    fn close(&self);

    /// Ends those that are still under way.
    fn cut(&self);

    /// Ends when the last connection is gone.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
