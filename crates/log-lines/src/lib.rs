//! Turns the bytes of logs into OTLP, without I/O and without a struct for each line.
//!
//! A *decoder* finds the records of one log in the chunks that its caller reads, and hands each to a [`RecordSink`].
//! The
//! [`RequestBuilder`] is the sink that writes them as OTLP. Neither keeps a byte that the file still has, except parts
//! of lines that have to be joined.
//!
//! ```
//! use std::sync::Arc;
//! use kubewake_log_lines::{
//!     ContainerLogDecoder, ContainerSettings, LinePosition, RecordEnvelope, RecordSettings, RequestBuilder,
//!     RequestLimits,
//! };
//!
//! let envelope = RecordEnvelope::from_resource_attributes([("k8s.pod.name", "shop-1")]);
//! let limits = RequestLimits { max_bytes: 1 << 20, max_records: 8192 };
//! let mut builder = RequestBuilder::new(Arc::new(envelope), RecordSettings::default(), limits);
//! let mut decoder = ContainerLogDecoder::new(ContainerSettings::default());
//!
//! let chunk = b"2023-11-14T22:13:20.5Z stdout F sold\n2023-11-14T22:13:21Z std";
//! let position = LinePosition { generation: 1, offset: 0 };
//! let consumed = decoder.push(chunk, position, 1_700_000_002_000_000_000, &mut builder);
//! assert_eq!(consumed, 37);
//! let request = builder.finish(decoder.commit_position()).expect("a record");
//! assert_eq!((request.records, request.commit.offset), (1, 37));
//! ```
//!
//! docs/decisions/0021-log-files-are-the-buffer.md states its place.

mod any_value;
mod body_parsing;
mod container;
mod encoding;
mod envelope;
mod json;
mod limits;
mod plain;
mod record;
mod request_builder;
mod stack_trace;
mod timestamp;
mod well_known;

pub use body_parsing::{BodyParsing, ParseCounts};
pub use container::{ContainerFormat, ContainerLogDecoder, ContainerSettings, DockerBodies};
pub use encoding::TextEncoding;
pub use envelope::RecordEnvelope;
pub use limits::{BlankTrimming, DecodeCounts, OversizeBehavior, RequestLimits};
pub use plain::{LineFraming, LinePattern, PlainLogDecoder, PlainSettings};
pub use record::{BodyKind, LinePosition, LineRecord, OutputStream, RecordSink};
pub use request_builder::{LogRequest, RecordSettings, RequestBuilder};
