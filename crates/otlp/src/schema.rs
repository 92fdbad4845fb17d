//! The messages of OTLP as data: what a field is called, how it is written on the wire and in JSON.
//!
//! A table of a few kilobytes stands in for some forty message structs: whoever must look inside a message walks its
//! bytes with the table beside it and builds nothing.

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

/// The most fields that one message has (`Span`), so that a walk can keep one slot per field on the stack.
pub(crate) const MAX_FIELDS: usize = 16;

/// A message: its name in the protocol and its fields, in the order in which JSON shows them.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
}

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// In lowerCamelCase; the snake_case name follows from it.
    pub(crate) name: &'static str,
    pub(crate) label: Label,
    pub(crate) kind: Kind,
}

/// How often a field may be there, and whether a default value counts as being there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// Once; the default value and absence are the same.
    Implicit,
    /// Once; the default value is a value (`optional`).
    Optional,
    /// One of several fields. No OTLP message has two such groups, so the label needs no group.
    Oneof,
    /// Any number of times; numbers may be packed.
    Repeated,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
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
    Message(&'static Message),
    /// A message that JSON writes in a way of its own.
    Special(Special),
}

/// Messages that protobuf's JSON does not write as objects with their fields. OTLP has none of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Special {
    /// A map, whose entries are messages with a key and a value; an object in JSON. The field is not labelled as repeated.
    Map(&'static [Field; 2]),
    /// A message around one value; the value in JSON.
    Wrapper(&'static Field),
    /// Seconds and nanoseconds since 1970; a text in JSON.
    Timestamp,
}

impl Message {
    /// The field of this number, with its place in the table.
    pub(crate) fn by_number(&self, number: u32) -> Option<(usize, &'static Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.number == number)
    }

    /// The field of this JSON name, in lowerCamelCase or snake_case, with its place in the table.
    pub(crate) fn by_name(&self, name: &[u8]) -> Option<(usize, &'static Field)> {
        let fields = self.fields.iter().enumerate();
        fields.clone().find(|(_, field)| field.name.as_bytes() == name).or_else(|| {
            // Only a name with an underscore can still be one of ours.
            memchr::memchr(b'_', name)?;
            fields.clone().find(|(_, field)| is_snake_of(field.name.as_bytes(), name))
        })
    }
}

impl Kind {
    pub(crate) const fn wire_type(self) -> u8 {
        match self {
            Kind::String | Kind::Bytes | Kind::Id(_) | Kind::Message(_) | Kind::Special(_) => LEN,
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => I64,
            Kind::Fixed32 => I32,
            Kind::Bool | Kind::Uint64 | Kind::Int64 | Kind::Uint32 | Kind::Int32 | Kind::Sint32 | Kind::Enum(_) => {
                VARINT
            }
        }
    }

    /// Whether several values may share one length-delimited field.
    pub(crate) fn packs(self) -> bool {
        self.wire_type() != LEN
    }
}

/// Whether `snake` is the snake_case spelling of the lowerCamelCase name `camel`.
fn is_snake_of(camel: &[u8], snake: &[u8]) -> bool {
    let mut rest = snake.iter();
    let spelled = camel.iter().all(|byte| match byte.is_ascii_uppercase() {
        true => rest.next() == Some(&b'_') && rest.next() == Some(&byte.to_ascii_lowercase()),
        false => rest.next() == Some(byte),
    });
    spelled && rest.next().is_none()
}

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, label: Label::Implicit, kind }
}

const fn optional(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, label: Label::Optional, kind }
}

const fn oneof(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, label: Label::Oneof, kind }
}

const fn repeated(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, label: Label::Repeated, kind }
}

const TRACE_ID: Kind = Kind::Id(16);
const SPAN_ID: Kind = Kind::Id(8);

#[cfg(test)]
mod tests;
