//! What flows through a pipeline, and what is owed for it.

mod arrival;
mod balancing;
mod batch;
mod budget;
mod calls;
mod cluster;
mod code;
mod decisions;
mod exporter;
pub(crate) mod heavy;
mod intake;
mod link;
mod moment;
mod outlet;
mod pipeline;
mod progress;
mod queue;
mod refusal;
mod registry;
mod rescue;
mod retry;
mod sampling;
mod shared;
mod stats;
#[cfg(test)]
pub(crate) mod testing;
mod work;

pub use arrival::{Arrival, SenderShare};
pub use balancing::{BalancerStats, Latency, MoveReason, ResolverKind};
pub use batch::{Batch, Origin, PART_BYTES, Part, one_by_one};
pub use budget::{ArrivingCharge, Budget, Charge, Member};
pub use calls::{Calls, CallsOf};
pub use cluster::{ClusterState, ClusterStats, ClusterView, Look};
pub use code::{Code, ConnectFault, ResolverFault, Said, TlsFault};
pub use decisions::{Decisions, SamplerStats};
pub use exporter::{Delivered, Exporter, SendError, SendFuture};
pub use intake::{Admission, Intake};
pub use link::{Answer, Consumer, Link, Pressure, Shortfall};
pub use moment::Moment;
pub use outlet::{HALT_LIMIT, Outlet, OutletSettings, UnderWay};
pub use pipeline::{Allowance, Gone, Pipeline, Processor};
pub use progress::{Course, Progress};
pub use refusal::{Refusal, RefusalKind};
pub use registry::{EndedPipeline, Registry};
pub use rescue::{HandOver, Next, Rescue};
pub use sampling::{Counts, Distribution, EarlyDecision, PolicyStats, SamplingOutcome, TailStats};
pub use shared::Shared;
pub use stats::{
    Destination, DropReason, ErrorClass, ExporterStats, Histogram, PerSignal, PipelineStats, ProcessorStats,
    QueueGauge, ReceiverStats, Transport, TurnedAway,
};
pub use work::WorkMemory;
