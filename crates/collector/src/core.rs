//! What flows through a pipeline, and what is owed for it.

mod batch;
mod budget;
mod code;
mod intake;
mod link;
mod outlet;
mod pipeline;
mod progress;
mod queue;
mod refusal;
mod retry;
mod stats;

pub use batch::{Batch, Origin, Part};
pub use budget::{Budget, Charge, Member};
pub use code::Code;
pub use intake::{Admission, Intake};
pub use link::{Answer, Consumer, Link, Pressure};
pub use outlet::{Delivered, Exporter, Outlet, OutletSettings, SendError, SendFuture};
pub use pipeline::{Pipeline, Processor};
pub use progress::{Course, Progress};
pub use refusal::{Refusal, RefusalKind};
pub use stats::{
    Destination, DropReason, ErrorClass, ExporterStats, Histogram, PerSignal, PipelineStats, ProcessorStats,
    ReceiverStats, Registry, Transport,
};
