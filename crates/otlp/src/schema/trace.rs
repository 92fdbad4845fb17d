//! `opentelemetry.proto.trace.v1`.

use super::FieldKind::{Enum, Fixed32, Fixed64, Message as Nested, String, Uint32};
use super::common::{KEY_VALUE, RESOURCE, SCOPE};
use super::{MessageSchema, SPAN_ID, TRACE_ID, field, repeated};

pub(crate) static TRACES_REQUEST: MessageSchema = MessageSchema {
    name: "ExportTraceServiceRequest",
    fields: &[repeated(1, "resourceSpans", Nested(&RESOURCE_SPANS))],
};

static RESOURCE_SPANS: MessageSchema = MessageSchema {
    name: "ResourceSpans",
    fields: &[
        field(1, "resource", Nested(&RESOURCE)),
        repeated(2, "scopeSpans", Nested(&SCOPE_SPANS)),
        field(3, "schemaUrl", String),
    ],
};

static SCOPE_SPANS: MessageSchema = MessageSchema {
    name: "ScopeSpans",
    fields: &[field(1, "scope", Nested(&SCOPE)), repeated(2, "spans", Nested(&SPAN)), field(3, "schemaUrl", String)],
};

pub(crate) static SPAN: MessageSchema = MessageSchema {
    name: "Span",
    fields: &[
        field(1, "traceId", TRACE_ID),
        field(2, "spanId", SPAN_ID),
        field(3, "traceState", String),
        field(4, "parentSpanId", SPAN_ID),
        field(16, "flags", Fixed32),
        field(5, "name", String),
        field(6, "kind", Enum(SPAN_KIND)),
        field(7, "startTimeUnixNano", Fixed64),
        field(8, "endTimeUnixNano", Fixed64),
        repeated(9, "attributes", Nested(&KEY_VALUE)),
        field(10, "droppedAttributesCount", Uint32),
        repeated(11, "events", Nested(&EVENT)),
        field(12, "droppedEventsCount", Uint32),
        repeated(13, "links", Nested(&LINK)),
        field(14, "droppedLinksCount", Uint32),
        field(15, "status", Nested(&STATUS)),
    ],
};

static EVENT: MessageSchema = MessageSchema {
    name: "Span.Event",
    fields: &[
        field(1, "timeUnixNano", Fixed64),
        field(2, "name", String),
        repeated(3, "attributes", Nested(&KEY_VALUE)),
        field(4, "droppedAttributesCount", Uint32),
    ],
};

static LINK: MessageSchema = MessageSchema {
    name: "Span.Link",
    fields: &[
        field(1, "traceId", TRACE_ID),
        field(2, "spanId", SPAN_ID),
        field(3, "traceState", String),
        repeated(4, "attributes", Nested(&KEY_VALUE)),
        field(5, "droppedAttributesCount", Uint32),
        field(6, "flags", Fixed32),
    ],
};

static STATUS: MessageSchema =
    MessageSchema { name: "Status", fields: &[field(2, "message", String), field(3, "code", Enum(STATUS_CODE))] };

const SPAN_KIND: &[(&str, i32)] = &[
    ("SPAN_KIND_UNSPECIFIED", 0),
    ("SPAN_KIND_INTERNAL", 1),
    ("SPAN_KIND_SERVER", 2),
    ("SPAN_KIND_CLIENT", 3),
    ("SPAN_KIND_PRODUCER", 4),
    ("SPAN_KIND_CONSUMER", 5),
];

const STATUS_CODE: &[(&str, i32)] = &[("STATUS_CODE_UNSET", 0), ("STATUS_CODE_OK", 1), ("STATUS_CODE_ERROR", 2)];
