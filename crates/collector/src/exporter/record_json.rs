//! JSON of attributes and values straight from the bytes of a request, for destinations that take documents.
//!
//! *Guarantees.* The text is valid JSON, whatever the bytes are: text that is not UTF-8 has U+FFFD, a number that is
//! not finite is `null`, and no object has a key twice. Integers stay integers, floats keep a `.0`, bytes are
//! hexadecimal. Attributes without a value are left out, and nothing else is: keys that become equal by dedotting get a
//! number, and a value that stands where others are nested becomes their member `value`. The result depends on nothing
//! but the input. Memory is asked for before it is allocated.
//!
//! *Does not* follow values deeper than [`MAX_VALUE_DEPTH`]; those are `null`.

mod field_list;
mod json_output;
mod key_style;
mod object_writer;
mod timestamp;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use field_list::{FieldList, FieldValue};
pub(crate) use json_output::JsonOutput;
pub(crate) use key_style::{key_style, label_style};
pub(crate) use object_writer::ObjectWriter;
pub(crate) use timestamp::{push_milliseconds, push_rfc3339};
pub(crate) use value::{push_text, push_value};

/// How deep values may be nested. Elasticsearch and OpenSearch refuse objects deeper than 20 levels by default.
pub(crate) const MAX_VALUE_DEPTH: usize = 64;
