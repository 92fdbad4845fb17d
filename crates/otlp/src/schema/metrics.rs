//! `opentelemetry.proto.metrics.v1`.

use super::FieldKind::{Bool, Double, Enum, Fixed64, Message as Nested, Sfixed64, Sint32, String, Uint32, Uint64};
use super::common::{KEY_VALUE, RESOURCE, SCOPE};
use super::{MessageSchema, SPAN_ID, TRACE_ID, field, oneof, optional, repeated};

pub(crate) static METRICS_REQUEST: MessageSchema = MessageSchema {
    name: "ExportMetricsServiceRequest",
    fields: &[repeated(1, "resourceMetrics", Nested(&RESOURCE_METRICS))],
};

static RESOURCE_METRICS: MessageSchema = MessageSchema {
    name: "ResourceMetrics",
    fields: &[
        field(1, "resource", Nested(&RESOURCE)),
        repeated(2, "scopeMetrics", Nested(&SCOPE_METRICS)),
        field(3, "schemaUrl", String),
    ],
};

static SCOPE_METRICS: MessageSchema = MessageSchema {
    name: "ScopeMetrics",
    fields: &[
        field(1, "scope", Nested(&SCOPE)),
        repeated(2, "metrics", Nested(&METRIC)),
        field(3, "schemaUrl", String),
    ],
};

pub(crate) static METRIC: MessageSchema = MessageSchema {
    name: "Metric",
    fields: &[
        field(1, "name", String),
        field(2, "description", String),
        field(3, "unit", String),
        oneof(5, "gauge", Nested(&GAUGE)),
        oneof(7, "sum", Nested(&SUM)),
        oneof(9, "histogram", Nested(&HISTOGRAM)),
        oneof(10, "exponentialHistogram", Nested(&EXPONENTIAL_HISTOGRAM)),
        oneof(11, "summary", Nested(&SUMMARY)),
        repeated(12, "metadata", Nested(&KEY_VALUE)),
    ],
};

static GAUGE: MessageSchema =
    MessageSchema { name: "Gauge", fields: &[repeated(1, "dataPoints", Nested(&NUMBER_DATA_POINT))] };

static SUM: MessageSchema = MessageSchema {
    name: "Sum",
    fields: &[
        repeated(1, "dataPoints", Nested(&NUMBER_DATA_POINT)),
        field(2, "aggregationTemporality", Enum(AGGREGATION_TEMPORALITY)),
        field(3, "isMonotonic", Bool),
    ],
};

static HISTOGRAM: MessageSchema = MessageSchema {
    name: "Histogram",
    fields: &[
        repeated(1, "dataPoints", Nested(&HISTOGRAM_DATA_POINT)),
        field(2, "aggregationTemporality", Enum(AGGREGATION_TEMPORALITY)),
    ],
};

static EXPONENTIAL_HISTOGRAM: MessageSchema = MessageSchema {
    name: "ExponentialHistogram",
    fields: &[
        repeated(1, "dataPoints", Nested(&EXPONENTIAL_HISTOGRAM_DATA_POINT)),
        field(2, "aggregationTemporality", Enum(AGGREGATION_TEMPORALITY)),
    ],
};

static SUMMARY: MessageSchema =
    MessageSchema { name: "Summary", fields: &[repeated(1, "dataPoints", Nested(&SUMMARY_DATA_POINT))] };

static NUMBER_DATA_POINT: MessageSchema = MessageSchema {
    name: "NumberDataPoint",
    fields: &[
        repeated(7, "attributes", Nested(&KEY_VALUE)),
        field(2, "startTimeUnixNano", Fixed64),
        field(3, "timeUnixNano", Fixed64),
        oneof(4, "asDouble", Double),
        oneof(6, "asInt", Sfixed64),
        repeated(5, "exemplars", Nested(&EXEMPLAR)),
        field(8, "flags", Uint32),
    ],
};

static HISTOGRAM_DATA_POINT: MessageSchema = MessageSchema {
    name: "HistogramDataPoint",
    fields: &[
        repeated(9, "attributes", Nested(&KEY_VALUE)),
        field(2, "startTimeUnixNano", Fixed64),
        field(3, "timeUnixNano", Fixed64),
        field(4, "count", Fixed64),
        optional(5, "sum", Double),
        repeated(6, "bucketCounts", Fixed64),
        repeated(7, "explicitBounds", Double),
        repeated(8, "exemplars", Nested(&EXEMPLAR)),
        field(10, "flags", Uint32),
        optional(11, "min", Double),
        optional(12, "max", Double),
    ],
};

static EXPONENTIAL_HISTOGRAM_DATA_POINT: MessageSchema = MessageSchema {
    name: "ExponentialHistogramDataPoint",
    fields: &[
        repeated(1, "attributes", Nested(&KEY_VALUE)),
        field(2, "startTimeUnixNano", Fixed64),
        field(3, "timeUnixNano", Fixed64),
        field(4, "count", Fixed64),
        optional(5, "sum", Double),
        field(6, "scale", Sint32),
        field(7, "zeroCount", Fixed64),
        field(8, "positive", Nested(&BUCKETS)),
        field(9, "negative", Nested(&BUCKETS)),
        field(10, "flags", Uint32),
        repeated(11, "exemplars", Nested(&EXEMPLAR)),
        optional(12, "min", Double),
        optional(13, "max", Double),
        field(14, "zeroThreshold", Double),
    ],
};

static BUCKETS: MessageSchema = MessageSchema {
    name: "ExponentialHistogramDataPoint.Buckets",
    fields: &[field(1, "offset", Sint32), repeated(2, "bucketCounts", Uint64)],
};

static SUMMARY_DATA_POINT: MessageSchema = MessageSchema {
    name: "SummaryDataPoint",
    fields: &[
        repeated(7, "attributes", Nested(&KEY_VALUE)),
        field(2, "startTimeUnixNano", Fixed64),
        field(3, "timeUnixNano", Fixed64),
        field(4, "count", Fixed64),
        field(5, "sum", Double),
        repeated(6, "quantileValues", Nested(&VALUE_AT_QUANTILE)),
        field(8, "flags", Uint32),
    ],
};

static VALUE_AT_QUANTILE: MessageSchema = MessageSchema {
    name: "SummaryDataPoint.ValueAtQuantile",
    fields: &[field(1, "quantile", Double), field(2, "value", Double)],
};

static EXEMPLAR: MessageSchema = MessageSchema {
    name: "Exemplar",
    fields: &[
        repeated(7, "filteredAttributes", Nested(&KEY_VALUE)),
        field(2, "timeUnixNano", Fixed64),
        oneof(3, "asDouble", Double),
        oneof(6, "asInt", Sfixed64),
        field(4, "spanId", SPAN_ID),
        field(5, "traceId", TRACE_ID),
    ],
};

const AGGREGATION_TEMPORALITY: &[(&str, i32)] = &[
    ("AGGREGATION_TEMPORALITY_UNSPECIFIED", 0),
    ("AGGREGATION_TEMPORALITY_DELTA", 1),
    ("AGGREGATION_TEMPORALITY_CUMULATIVE", 2),
];
