//! The OTLP field numbers that this crate uses, a module per message.

/// `ExportTraceServiceRequest`, `ExportLogsServiceRequest` and `ExportMetricsServiceRequest` agree.
pub(crate) mod request {
    pub(crate) const RESOURCE_ENTRIES: u32 = 1;
}

/// `ResourceSpans`, `ResourceLogs` and `ResourceMetrics` agree.
pub(crate) mod resource_entry {
    pub(crate) const RESOURCE: u32 = 1;
    pub(crate) const SCOPE_ENTRIES: u32 = 2;
    pub(crate) const SCHEMA_URL: u32 = 3;
}

/// `ScopeSpans`, `ScopeLogs` and `ScopeMetrics` agree.
pub(crate) mod scope_entry {
    pub(crate) const SCOPE: u32 = 1;
    pub(crate) const RECORDS: u32 = 2;
    pub(crate) const SCHEMA_URL: u32 = 3;
}

pub(crate) mod resource {
    pub(crate) const ATTRIBUTES: u32 = 1;
    pub(crate) const DROPPED_ATTRIBUTES: u32 = 2;
}

pub(crate) mod scope {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const VERSION: u32 = 2;
    pub(crate) const ATTRIBUTES: u32 = 3;
    pub(crate) const DROPPED_ATTRIBUTES: u32 = 4;
}

pub(crate) mod span {
    pub(crate) const TRACE_ID: u32 = 1;
    pub(crate) const SPAN_ID: u32 = 2;
    pub(crate) const TRACE_STATE: u32 = 3;
    pub(crate) const PARENT_SPAN_ID: u32 = 4;
    pub(crate) const NAME: u32 = 5;
    pub(crate) const KIND: u32 = 6;
    pub(crate) const START: u32 = 7;
    pub(crate) const END: u32 = 8;
    pub(crate) const ATTRIBUTES: u32 = 9;
    pub(crate) const DROPPED_ATTRIBUTES: u32 = 10;
    pub(crate) const EVENTS: u32 = 11;
    pub(crate) const DROPPED_EVENTS: u32 = 12;
    pub(crate) const LINKS: u32 = 13;
    pub(crate) const DROPPED_LINKS: u32 = 14;
    pub(crate) const STATUS: u32 = 15;
    pub(crate) const FLAGS: u32 = 16;
}

pub(crate) mod event {
    pub(crate) const TIME: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const ATTRIBUTES: u32 = 3;
    pub(crate) const DROPPED_ATTRIBUTES: u32 = 4;
}

pub(crate) mod link {
    pub(crate) const TRACE_ID: u32 = 1;
    pub(crate) const SPAN_ID: u32 = 2;
    pub(crate) const TRACE_STATE: u32 = 3;
    pub(crate) const ATTRIBUTES: u32 = 4;
    pub(crate) const DROPPED_ATTRIBUTES: u32 = 5;
    pub(crate) const FLAGS: u32 = 6;
}

pub(crate) mod status {
    pub(crate) const MESSAGE: u32 = 2;
    pub(crate) const CODE: u32 = 3;
}

pub(crate) mod log {
    pub(crate) const TIME: u32 = 1;
    pub(crate) const SEVERITY_NUMBER: u32 = 2;
    pub(crate) const SEVERITY_TEXT: u32 = 3;
    pub(crate) const BODY: u32 = 5;
    pub(crate) const ATTRIBUTES: u32 = 6;
    pub(crate) const DROPPED_ATTRIBUTES: u32 = 7;
    pub(crate) const FLAGS: u32 = 8;
    pub(crate) const TRACE_ID: u32 = 9;
    pub(crate) const SPAN_ID: u32 = 10;
    pub(crate) const OBSERVED_TIME: u32 = 11;
    pub(crate) const EVENT_NAME: u32 = 12;
}

pub(crate) mod metric {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const DESCRIPTION: u32 = 2;
    pub(crate) const UNIT: u32 = 3;
    pub(crate) const GAUGE: u32 = 5;
    pub(crate) const SUM: u32 = 7;
    pub(crate) const HISTOGRAM: u32 = 9;
    pub(crate) const EXPONENTIAL_HISTOGRAM: u32 = 10;
    pub(crate) const SUMMARY: u32 = 11;
    pub(crate) const METADATA: u32 = 12;
}

/// `Gauge`, `Sum`, `Histogram`, `ExponentialHistogram` and `Summary` agree where they have the field.
pub(crate) mod data {
    pub(crate) const POINTS: u32 = 1;
    pub(crate) const TEMPORALITY: u32 = 2;
    pub(crate) const IS_MONOTONIC: u32 = 3;
}

pub(crate) mod key_value {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

pub(crate) mod any_value {
    pub(crate) const STRING: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const INT: u32 = 3;
    pub(crate) const DOUBLE: u32 = 4;
    pub(crate) const ARRAY: u32 = 5;
    pub(crate) const KVLIST: u32 = 6;
    pub(crate) const BYTES: u32 = 7;
    pub(crate) const VALUES: u32 = 1;
}

/// The fields that data point messages have in common, where they have them.
pub(crate) mod point {
    pub(crate) const START: u32 = 2;
    pub(crate) const TIME: u32 = 3;
    pub(crate) const COUNT: u32 = 4;
    pub(crate) const SUM: u32 = 5;
}

pub(crate) mod number_point {
    pub(crate) const AS_DOUBLE: u32 = 4;
    pub(crate) const AS_INT: u32 = 6;
    pub(crate) const ATTRIBUTES: u32 = 7;
    pub(crate) const FLAGS: u32 = 8;
}

pub(crate) mod histogram_point {
    pub(crate) const BUCKET_COUNTS: u32 = 6;
    pub(crate) const BOUNDS: u32 = 7;
    pub(crate) const ATTRIBUTES: u32 = 9;
    pub(crate) const FLAGS: u32 = 10;
    pub(crate) const MIN: u32 = 11;
    pub(crate) const MAX: u32 = 12;
}

pub(crate) mod exponential_point {
    pub(crate) const ATTRIBUTES: u32 = 1;
    pub(crate) const SCALE: u32 = 6;
    pub(crate) const ZERO_COUNT: u32 = 7;
    pub(crate) const POSITIVE: u32 = 8;
    pub(crate) const NEGATIVE: u32 = 9;
    pub(crate) const FLAGS: u32 = 10;
    pub(crate) const MIN: u32 = 12;
    pub(crate) const MAX: u32 = 13;
    pub(crate) const ZERO_THRESHOLD: u32 = 14;
    pub(crate) const BUCKETS_OFFSET: u32 = 1;
    pub(crate) const BUCKETS_COUNTS: u32 = 2;
}

pub(crate) mod summary_point {
    pub(crate) const QUANTILES: u32 = 6;
    pub(crate) const ATTRIBUTES: u32 = 7;
    pub(crate) const FLAGS: u32 = 8;
    pub(crate) const QUANTILE: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}
