//! One trace through operators and their operands.

mod attributes;
pub mod carrier;
mod child;
pub mod client;
pub mod context;
pub mod controller;
mod converge;
mod hold;
pub mod operand;
mod run;
pub mod sampler;
#[cfg(feature = "setup")]
pub mod setup;
#[cfg(feature = "setup")]
pub mod spans;
mod status;
mod step;
mod trail;
mod trust;
#[cfg(feature = "webhook")]
pub mod webhook;

pub use child::Children;
pub use controller::Controller;
pub use hold::Hold;
pub use run::Run;
pub use sampler::FollowLinks;
#[cfg(feature = "setup")]
pub use setup::{Setup, Telemetry, setup};
pub use trail::{Clock, Counters, Mode, Options, Trail};
pub use trust::Trust;
