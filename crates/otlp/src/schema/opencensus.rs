//! `opencensus.proto.agent.trace.v1`, as far as it has a counterpart in OTLP.

use super::FieldKind::{
    Bool, Bytes, Double, Enum, Int32, Int64, Message as Nested, Special as Own, String, Uint32, Uint64,
};
use super::SpecialMessage::{Map, Timestamp, Wrapper};
use super::{FieldSchema, MessageSchema, field, oneof, repeated};

pub(crate) static OPENCENSUS_REQUEST: MessageSchema = MessageSchema {
    name: "ExportTraceServiceRequest",
    fields: &[
        field(1, "node", Nested(&NODE)),
        repeated(2, "spans", Nested(&SPAN)),
        field(3, "resource", Nested(&RESOURCE)),
    ],
};

static NODE: MessageSchema = MessageSchema {
    name: "Node",
    fields: &[
        field(1, "identifier", Nested(&IDENTIFIER)),
        field(2, "libraryInfo", Nested(&LIBRARY)),
        field(3, "serviceInfo", Nested(&SERVICE)),
        field(4, "attributes", Own(Map(&TEXTS))),
    ],
};

static IDENTIFIER: MessageSchema = MessageSchema {
    name: "ProcessIdentifier",
    fields: &[field(1, "hostName", String), field(2, "pid", Uint32), field(3, "startTimestamp", Own(Timestamp))],
};

static LIBRARY: MessageSchema = MessageSchema {
    name: "LibraryInfo",
    fields: &[
        field(1, "language", Enum(LANGUAGE)),
        field(2, "exporterVersion", String),
        field(3, "coreLibraryVersion", String),
    ],
};

static SERVICE: MessageSchema = MessageSchema { name: "ServiceInfo", fields: &[field(1, "name", String)] };

static RESOURCE: MessageSchema =
    MessageSchema { name: "Resource", fields: &[field(1, "type", String), field(2, "labels", Own(Map(&TEXTS)))] };

static SPAN: MessageSchema = MessageSchema {
    name: "Span",
    fields: &[
        field(1, "traceId", Bytes),
        field(2, "spanId", Bytes),
        field(3, "parentSpanId", Bytes),
        field(4, "name", Nested(&TEXT)),
        field(5, "startTime", Own(Timestamp)),
        field(6, "endTime", Own(Timestamp)),
        field(7, "attributes", Nested(&ATTRIBUTES)),
        field(9, "timeEvents", Nested(&TIME_EVENTS)),
        field(10, "links", Nested(&LINKS)),
        field(11, "status", Nested(&STATUS)),
        field(12, "sameProcessAsParentSpan", Own(Wrapper(&TRUTH))),
        field(14, "kind", Enum(SPAN_KIND)),
        field(15, "tracestate", Nested(&TRACE_STATE)),
        field(16, "resource", Nested(&RESOURCE)),
    ],
};

static TEXT: MessageSchema = MessageSchema { name: "TruncatableString", fields: &[field(1, "value", String)] };

static ATTRIBUTES: MessageSchema = MessageSchema {
    name: "Attributes",
    fields: &[field(1, "attributeMap", Own(Map(&VALUES))), field(2, "droppedAttributesCount", Int32)],
};

static ATTRIBUTE_VALUE: MessageSchema = MessageSchema {
    name: "AttributeValue",
    fields: &[
        oneof(1, "stringValue", Nested(&TEXT)),
        oneof(2, "intValue", Int64),
        oneof(3, "boolValue", Bool),
        oneof(4, "doubleValue", Double),
    ],
};

static TIME_EVENTS: MessageSchema = MessageSchema {
    name: "TimeEvents",
    fields: &[
        repeated(1, "timeEvent", Nested(&TIME_EVENT)),
        field(2, "droppedAnnotationsCount", Int32),
        field(3, "droppedMessageEventsCount", Int32),
    ],
};

static TIME_EVENT: MessageSchema = MessageSchema {
    name: "TimeEvent",
    fields: &[
        field(1, "time", Own(Timestamp)),
        oneof(2, "annotation", Nested(&ANNOTATION)),
        oneof(3, "messageEvent", Nested(&MESSAGE_EVENT)),
    ],
};

static ANNOTATION: MessageSchema = MessageSchema {
    name: "Annotation",
    fields: &[field(1, "description", Nested(&TEXT)), field(2, "attributes", Nested(&ATTRIBUTES))],
};

static MESSAGE_EVENT: MessageSchema = MessageSchema {
    name: "MessageEvent",
    fields: &[
        field(1, "type", Enum(MESSAGE_TYPE)),
        field(2, "id", Uint64),
        field(3, "uncompressedSize", Uint64),
        field(4, "compressedSize", Uint64),
    ],
};

static LINKS: MessageSchema = MessageSchema {
    name: "Links",
    fields: &[repeated(1, "link", Nested(&LINK)), field(2, "droppedLinksCount", Int32)],
};

static LINK: MessageSchema = MessageSchema {
    name: "Link",
    fields: &[
        field(1, "traceId", Bytes),
        field(2, "spanId", Bytes),
        field(4, "attributes", Nested(&ATTRIBUTES)),
        field(5, "tracestate", Nested(&TRACE_STATE)),
    ],
};

static STATUS: MessageSchema =
    MessageSchema { name: "Status", fields: &[field(1, "code", Int32), field(2, "message", String)] };

static TRACE_STATE: MessageSchema =
    MessageSchema { name: "Tracestate", fields: &[repeated(1, "entries", Nested(&TRACE_STATE_ENTRY))] };

static TRACE_STATE_ENTRY: MessageSchema =
    MessageSchema { name: "Tracestate.Entry", fields: &[field(1, "key", String), field(2, "value", String)] };

static TEXTS: [FieldSchema; 2] = [field(1, "key", String), field(2, "value", String)];

static VALUES: [FieldSchema; 2] = [field(1, "key", String), field(2, "value", Nested(&ATTRIBUTE_VALUE))];

static TRUTH: FieldSchema = field(1, "value", Bool);

const SPAN_KIND: &[(&str, i32)] = &[("SPAN_KIND_UNSPECIFIED", 0), ("SERVER", 1), ("CLIENT", 2)];

const MESSAGE_TYPE: &[(&str, i32)] = &[("TYPE_UNSPECIFIED", 0), ("SENT", 1), ("RECEIVED", 2)];

const LANGUAGE: &[(&str, i32)] = &[
    ("LANGUAGE_UNSPECIFIED", 0),
    ("CPP", 1),
    ("C_SHARP", 2),
    ("ERLANG", 3),
    ("GO_LANG", 4),
    ("JAVA", 5),
    ("NODE_JS", 6),
    ("PHP", 7),
    ("PYTHON", 8),
    ("RUBY", 9),
    ("WEB_JS", 10),
];
