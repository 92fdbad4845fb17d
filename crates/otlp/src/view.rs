//! Borrowed views of what is in a request.
//!
//! A view is a slice with a name: nothing is decoded when it is made, and each method finds its field by a walk over the
//! message. Of a field that is not repeated the last one counts, and a message that comes in parts is all of them together, as
//! protobuf says: what a view reads is what every backend reads. An absent field reads as its default.
//! Whoever needs many fields of the same message pays a walk for each; these messages are small.
//!
//! Guaranteed: no method panics or allocates, whatever the bytes (except those that say so: [`lossy`], [`AnyValue::to_text`], and
//! for a resource, a scope, a raw value or a raw body that was sent in several parts). Iterators end where a message stops being well formed; fields with
//! a wire type that is not theirs are absent; unknown fields are passed over. Text is bytes, because the Collector does not ask for
//! UTF-8 either. A metric with several data messages is the one thing that is not read as protobuf says: the last one counts. A
//! [`scan`](crate::scan) refuses it.

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

pub use common::{Attributes, KeyValue, Resource, Scope};
pub use log::LogRecord;
pub use message::{Repeated, View, lossy};
pub use metric::{Data, Metric, MetricKind, Point, Temporality};
pub use point::{Buckets, Doubles, ExponentialHistogram, Fixed64s, Histogram, Number, Quantile, SummaryPoint, Varints};
pub use sampling::{LogToSample, SpanToSample};
pub use span::{Event, Link, Span, Status};
pub use value::{AnyValue, Values};
pub use walk::{RecordRef, RecordView, ResourceEntry, ScopeEntry, resources};
