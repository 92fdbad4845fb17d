//! The types that flow through a pipeline, the memory they are charged for, exporter queues, and counters.

mod arriving_reservation;
mod atomic_instant;
pub mod available_memory;
mod balancer_stats;
mod batch;
mod batch_queue;
mod budget;
mod call_stats;
mod cluster_stats;
mod code;
mod connector_output;
mod delivery_progress;
mod delivery_receipt;
mod exporter;
mod exporter_queue;
mod failover;
mod fanout;
pub(crate) mod heavy_work;
mod log_file_stats;
mod pipeline;
mod pipeline_set;
mod record_outcomes;
mod refusal;
mod registry;
mod rejection;
mod retry_backoff;
mod sampler_stats;
mod shared_instances;
mod stats;
mod tail_sampler_stats;
#[cfg(test)]
pub(crate) mod testing;
mod work_memory;

pub use arriving_reservation::{ArrivingReservation, SenderShare};
pub use atomic_instant::AtomicInstant;
pub use balancer_stats::{BalancerStats, MoveReason, PeerLatency, ResolverKind};
pub use batch::{Batch, Origin, OriginCharge, PART_OVERHEAD_BYTES, Part, one_by_one};
pub use budget::{ArrivingCharge, Budget, Charge, Member};
pub use call_stats::{CallSnapshot, CallStats};
pub use cluster_stats::{ClusterSnapshot, ClusterState, ClusterStats, ClusterView};
pub use code::{BackendStatus, Code, ConnectFault, ResolverFault, TlsFault};
pub use connector_output::ConnectorOutput;
pub use delivery_progress::{DeliveryProgress, DeliverySnapshot};
pub use delivery_receipt::{DeliveryOutcome, DeliveryReceipt, HeldReceipts, ReceiptListener, ReceiptOutput};
pub use exporter::{Exporter, PartialDelivery, SendError, SendFuture, SendSuccess};
pub use exporter_queue::{ExporterQueue, ExporterQueueSettings, HALT_TIMEOUT, InFlightRequest};
pub use failover::{Failover, FailoverFuture, RetryDecision};
pub use fanout::{ConsumeOutcome, Consumer, ConsumerFanout, OverflowPolicy, PartialSuccess};
pub use log_file_stats::{LogFileStats, LogOutputProgress};
pub use pipeline::{Allowance, Pipeline, PipelineGone, Processor};
pub use pipeline_set::{PipelineSet, RequestReservation};
pub use record_outcomes::{RecordOutcome, RecordOutcomes};
pub use refusal::{Refusal, RefusalKind};
pub use registry::{EndedPipeline, StatsRegistry};
pub use rejection::{RejectReason, RejectionCounts};
pub use sampler_stats::{PolicyDecisions, SamplerStats};
pub use shared_instances::SharedInstances;
pub use stats::{
    BatchSizeHistogram, DestinationLabels, DropReason, EarlyRefusal, ErrorClass, ExporterStats, PerSignal,
    PipelineStats, ProcessorStats, QueueGauge, ReceiverStats, RejectionStats, Transport,
};
pub use tail_sampler_stats::{
    EarlyDecision, PolicyStats, SamplingOutcome, TailSamplerStats, TraceCounts, ValueHistogram,
};
pub use work_memory::WorkMemory;
