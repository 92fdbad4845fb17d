//! `opentelemetry.proto.logs.v1`.

use super::FieldKind::{Enum, Fixed32, Fixed64, Message as Nested, String, Uint32};
use super::common::{ANY_VALUE, KEY_VALUE, RESOURCE, SCOPE};
use super::{MessageSchema, SPAN_ID, TRACE_ID, field, repeated};

pub(crate) static LOGS_REQUEST: MessageSchema =
    MessageSchema { name: "ExportLogsServiceRequest", fields: &[repeated(1, "resourceLogs", Nested(&RESOURCE_LOGS))] };

static RESOURCE_LOGS: MessageSchema = MessageSchema {
    name: "ResourceLogs",
    fields: &[
        field(1, "resource", Nested(&RESOURCE)),
        repeated(2, "scopeLogs", Nested(&SCOPE_LOGS)),
        field(3, "schemaUrl", String),
    ],
};

static SCOPE_LOGS: MessageSchema = MessageSchema {
    name: "ScopeLogs",
    fields: &[
        field(1, "scope", Nested(&SCOPE)),
        repeated(2, "logRecords", Nested(&LOG_RECORD)),
        field(3, "schemaUrl", String),
    ],
};

pub(crate) static LOG_RECORD: MessageSchema = MessageSchema {
    name: "LogRecord",
    fields: &[
        field(1, "timeUnixNano", Fixed64),
        field(11, "observedTimeUnixNano", Fixed64),
        field(2, "severityNumber", Enum(SEVERITY_NUMBER)),
        field(3, "severityText", String),
        field(12, "eventName", String),
        field(5, "body", Nested(&ANY_VALUE)),
        repeated(6, "attributes", Nested(&KEY_VALUE)),
        field(7, "droppedAttributesCount", Uint32),
        field(8, "flags", Fixed32),
        field(9, "traceId", TRACE_ID),
        field(10, "spanId", SPAN_ID),
    ],
};

const SEVERITY_NUMBER: &[(&str, i32)] = &[
    ("SEVERITY_NUMBER_UNSPECIFIED", 0),
    ("SEVERITY_NUMBER_TRACE", 1),
    ("SEVERITY_NUMBER_TRACE2", 2),
    ("SEVERITY_NUMBER_TRACE3", 3),
    ("SEVERITY_NUMBER_TRACE4", 4),
    ("SEVERITY_NUMBER_DEBUG", 5),
    ("SEVERITY_NUMBER_DEBUG2", 6),
    ("SEVERITY_NUMBER_DEBUG3", 7),
    ("SEVERITY_NUMBER_DEBUG4", 8),
    ("SEVERITY_NUMBER_INFO", 9),
    ("SEVERITY_NUMBER_INFO2", 10),
    ("SEVERITY_NUMBER_INFO3", 11),
    ("SEVERITY_NUMBER_INFO4", 12),
    ("SEVERITY_NUMBER_WARN", 13),
    ("SEVERITY_NUMBER_WARN2", 14),
    ("SEVERITY_NUMBER_WARN3", 15),
    ("SEVERITY_NUMBER_WARN4", 16),
    ("SEVERITY_NUMBER_ERROR", 17),
    ("SEVERITY_NUMBER_ERROR2", 18),
    ("SEVERITY_NUMBER_ERROR3", 19),
    ("SEVERITY_NUMBER_ERROR4", 20),
    ("SEVERITY_NUMBER_FATAL", 21),
    ("SEVERITY_NUMBER_FATAL2", 22),
    ("SEVERITY_NUMBER_FATAL3", 23),
    ("SEVERITY_NUMBER_FATAL4", 24),
];
