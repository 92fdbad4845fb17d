//! The messages of OTLP as data: the names of fields, and their types on the wire and in JSON.
//!
//! A table of a few kilobytes replaces some forty message structs: the JSON codec walks the bytes beside the
//! table, and builds no messages.

mod common;
mod logs;
mod metrics;
mod opencensus;
mod trace;

pub(crate) use common::{RESOURCE, SCOPE};
pub(crate) use logs::{LOG_RECORD, LOGS_REQUEST};
pub(crate) use metrics::{METRIC, METRICS_REQUEST};
pub(crate) use opencensus::OPENCENSUS_REQUEST;
pub(crate) use trace::{SPAN, TRACES_REQUEST};

use crate::wire::{I32, I64, LEN, VARINT};

/// The largest number of fields of a message (`Span`), so that a walk can keep one slot per field on the stack.
pub(crate) const MAX_FIELDS: usize = 16;

/// A message: its name in the protocol and its fields, in the order in which JSON shows them.
#[derive(Debug)]
pub(crate) struct MessageSchema {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [FieldSchema],
}

/// One field of a message.
#[derive(Debug)]
pub(crate) struct FieldSchema {
    pub(crate) number: u32,
    /// In lowerCamelCase; the snake_case name follows from it.
    pub(crate) name: &'static str,
    pub(crate) label: FieldLabel,
    pub(crate) kind: FieldKind,
}

/// The cardinality of a field, and whether a default value counts as present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldLabel {
    /// Once; the default value and absence are the same.
    Implicit,
    /// Once; the default value is a value (`optional`).
    Optional,
    /// One of several fields. No OTLP message has two such groups, so the label needs no group.
    Oneof,
    /// Any number of times; numbers may be packed.
    Repeated,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldKind {
    String,
    /// Base64 in JSON.
    Bytes,
    /// Bytes of this length, or none; hexadecimal in JSON.
    Id(usize),
    Bool,
    Double,
    Fixed64,
    Sfixed64,
    Uint64,
    Int64,
    Fixed32,
    Uint32,
    Int32,
    Sint32,
    Enum(&'static [(&'static str, i32)]),
    Message(&'static MessageSchema),
    /// A message with a JSON form of its own.
    Special(SpecialMessage),
}

/// Messages that protobuf's JSON does not write as objects with their fields. Only OpenCensus has them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SpecialMessage {
    /// A map, whose entries are messages with a key and a value; an object in JSON. The field is not labelled
    /// as repeated.
    Map(&'static [FieldSchema; 2]),
    /// A wrapper of one value; the value in JSON.
    Wrapper(&'static FieldSchema),
    /// Seconds and nanoseconds since 1970; a text in JSON.
    Timestamp,
}

impl MessageSchema {
    /// The field with this number, and its index in the table.
    pub(crate) fn by_number(&self, number: u32) -> Option<(usize, &'static FieldSchema)> {
        self.fields.iter().enumerate().find(|(_, field)| field.number == number)
    }

    /// The field with this JSON name, in lowerCamelCase or snake_case, and its index in the table.
    pub(crate) fn by_name(&self, name: &[u8]) -> Option<(usize, &'static FieldSchema)> {
        let fields = self.fields.iter().enumerate();
        fields.clone().find(|(_, field)| field.name.as_bytes() == name).or_else(|| {
            // Only a name with an underscore can still be a known one.
            memchr::memchr(b'_', name)?;
            fields.clone().find(|(_, field)| is_snake_of(field.name.as_bytes(), name))
        })
    }
}

impl FieldKind {
    pub(crate) const fn wire_type(self) -> u8 {
        match self {
            FieldKind::String | FieldKind::Bytes | FieldKind::Id(_) | FieldKind::Message(_) | FieldKind::Special(_) => {
                LEN
            }
            FieldKind::Double | FieldKind::Fixed64 | FieldKind::Sfixed64 => I64,
            FieldKind::Fixed32 => I32,
            FieldKind::Bool
            | FieldKind::Uint64
            | FieldKind::Int64
            | FieldKind::Uint32
            | FieldKind::Int32
            | FieldKind::Sint32
            | FieldKind::Enum(_) => VARINT,
        }
    }

    /// Whether several values may share one length-delimited field.
    pub(crate) fn is_packable(self) -> bool {
        self.wire_type() != LEN
    }
}

/// Whether `snake` is the snake_case spelling of the lowerCamelCase name `camel`.
fn is_snake_of(camel: &[u8], snake: &[u8]) -> bool {
    let mut rest = snake.iter();
    let spelled = camel.iter().all(|byte| {
        if byte.is_ascii_uppercase() {
            rest.next() == Some(&b'_') && rest.next() == Some(&byte.to_ascii_lowercase())
        } else {
            rest.next() == Some(byte)
        }
    });
    spelled && rest.next().is_none()
}

const fn field(number: u32, name: &'static str, kind: FieldKind) -> FieldSchema {
    FieldSchema { number, name, label: FieldLabel::Implicit, kind }
}

const fn optional(number: u32, name: &'static str, kind: FieldKind) -> FieldSchema {
    FieldSchema { number, name, label: FieldLabel::Optional, kind }
}

const fn oneof(number: u32, name: &'static str, kind: FieldKind) -> FieldSchema {
    FieldSchema { number, name, label: FieldLabel::Oneof, kind }
}

const fn repeated(number: u32, name: &'static str, kind: FieldKind) -> FieldSchema {
    FieldSchema { number, name, label: FieldLabel::Repeated, kind }
}

const TRACE_ID: FieldKind = FieldKind::Id(16);
const SPAN_ID: FieldKind = FieldKind::Id(8);

#[cfg(test)]
mod tests;
