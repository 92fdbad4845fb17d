//! Borrowed views of messages.
//!
//! A view is a slice with a type: nothing is decoded when it is made, and each method finds its field by a walk
//! over the message. Of a field that is not repeated the last one counts, and a message that comes in parts is
//! merged, by the rules of protobuf: a view reads the same as every backend. An absent field reads as its
//! default. A caller that needs many fields of a message pays a walk for each; these messages are small.
//!
//! Guaranteed: no method panics or allocates, whatever the bytes (with these exceptions, which allocate:
//! [`lossy`], [`AnyValue::to_text`], and for a resource, a scope, a raw value or a raw body that was sent in
//! several parts). Iterators end where a message stops being well formed; fields with a wrong wire type are
//! absent; unknown fields are skipped. Text is bytes, because the Collector does not require UTF-8 either. A
//! metric with several data messages is the one exception from protobuf's rules: the last one counts.
//! [`scan`](crate::scan) refuses such a metric.

mod common;
mod log;
mod message;
mod metric;
mod point;
mod sampling;
mod span;
mod text;
mod value;
mod walk;

#[cfg(test)]
mod tests;

pub use common::{AttributesView, KeyValue, Resource, Scope};
pub use log::LogRecord;
pub use message::{MessageView, RepeatedField, lossy};
pub use metric::{AggregationTemporality, DataPoint, Metric, MetricData, MetricKind};
pub use point::{
    DoubleValues, ExponentialBuckets, ExponentialHistogramPoint, Fixed64Values, HistogramPoint, NumberPoint,
    QuantileValue, SummaryPoint, VarintValues,
};
pub use sampling::{LogToSample, SpanToSample};
pub use span::{Event, Link, Span, SpanStatus};
pub use value::{AnyValue, ValueList};
pub use walk::{RecordRef, RecordView, ResourceEntry, ScopeEntry, resources};
