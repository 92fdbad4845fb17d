//! `opentelemetry.proto.common.v1` and `opentelemetry.proto.resource.v1`.

use super::FieldKind::{Bool, Bytes, Double, Int32, Int64, Message as Nested, String, Uint32};
use super::{MessageSchema, field, oneof, repeated};

pub(crate) static RESOURCE: MessageSchema = MessageSchema {
    name: "Resource",
    fields: &[
        repeated(1, "attributes", Nested(&KEY_VALUE)),
        field(2, "droppedAttributesCount", Uint32),
        repeated(3, "entityRefs", Nested(&ENTITY_REF)),
    ],
};

static ENTITY_REF: MessageSchema = MessageSchema {
    name: "EntityRef",
    fields: &[
        field(1, "schemaUrl", String),
        field(2, "type", String),
        repeated(3, "idKeys", String),
        repeated(4, "descriptionKeys", String),
    ],
};

pub(crate) static SCOPE: MessageSchema = MessageSchema {
    name: "InstrumentationScope",
    fields: &[
        field(1, "name", String),
        field(2, "version", String),
        repeated(3, "attributes", Nested(&KEY_VALUE)),
        field(4, "droppedAttributesCount", Uint32),
    ],
};

pub(super) static KEY_VALUE: MessageSchema = MessageSchema {
    name: "KeyValue",
    fields: &[field(1, "key", String), field(2, "value", Nested(&ANY_VALUE)), field(3, "keyStrindex", Int32)],
};

pub(super) static ANY_VALUE: MessageSchema = MessageSchema {
    name: "AnyValue",
    fields: &[
        oneof(1, "stringValue", String),
        oneof(2, "boolValue", Bool),
        oneof(3, "intValue", Int64),
        oneof(4, "doubleValue", Double),
        oneof(5, "arrayValue", Nested(&ARRAY_VALUE)),
        oneof(6, "kvlistValue", Nested(&KEY_VALUE_LIST)),
        oneof(7, "bytesValue", Bytes),
        oneof(8, "stringValueStrindex", Int32),
    ],
};

static ARRAY_VALUE: MessageSchema =
    MessageSchema { name: "ArrayValue", fields: &[repeated(1, "values", Nested(&ANY_VALUE))] };

static KEY_VALUE_LIST: MessageSchema =
    MessageSchema { name: "KeyValueList", fields: &[repeated(1, "values", Nested(&KEY_VALUE))] };
