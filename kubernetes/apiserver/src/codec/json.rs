//! Decodes and encodes JSON.
//!
//! [`decode`] reads in one pass and finds duplicate keys. Errors have the messages of Go's encoding/json. As
//! there, the last of duplicate keys wins, invalid UTF-8 becomes U+FFFD and integers that fit stay integers.
//! Memory is bounded by the length of the input, depth by [`MAX_DEPTH`].

mod encode;
mod problem_order;
mod scan;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Number, Value, map::Entry};

use self::scan::JsonScanner;
use crate::api::go_format;

pub use self::{
    encode::{encode, encode_pretty, write},
    problem_order::sort_by_body_order,
};

/// The deepest nesting. Go accepts 10 000 levels; stored objects are decoded by serde_json, which accepts 128,
/// and an object is nested a few levels deeper in an AdmissionReview and in managedFields.
pub const MAX_DEPTH: usize = 100;

/// The limit of reported problems of one body, as in kube-apiserver.
pub const MAX_STRICT_ERRORS: usize = 100;

/// The limit of the total length of reported problems, since keys may be long; the first problem is always
/// reported.
const MAX_STRICT_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq)]
pub struct DecodedJson {
    /// The decoded value; the last of duplicate keys wins.
    pub value: Value,
    /// The paths of duplicate keys: `spec.containers[0].name`.
    pub duplicates: Vec<String>,
}

/// A decode error, with the message of Go's encoding/json.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonDecodeError {
    #[error("unexpected end of JSON input")]
    End,
    #[error("invalid character {} {context}", go_format::quote_byte(*.byte))]
    Character { byte: u8, context: &'static str },
    #[error("invalid character {} in literal {literal} (expecting {})", go_format::quote_byte(*.byte), go_format::quote_byte(*.expected))]
    Literal { byte: u8, literal: &'static str, expected: u8 },
    #[error("exceeded max depth")]
    Depth,
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Number(String),
}

/// Decodes one value, surrounded by nothing but white space.
///
/// # Errors
/// If it is not JSON or nested too deep.
pub fn decode(input: &[u8]) -> Result<DecodedJson, JsonDecodeError> {
    decode_within(input, 0)
}

/// Decodes one value that is nested in another one at this depth.
///
/// # Errors
/// If it is not JSON or nested too deep.
pub fn decode_within(input: &[u8], depth: usize) -> Result<DecodedJson, JsonDecodeError> {
    let mut decoder = StrictJsonDecoder { scan: JsonScanner::new(input), duplicates: Vec::new() };
    let value = decoder.value(depth, None)?;
    decoder.scan.end()?;
    Ok(DecodedJson { value, duplicates: decoder.duplicates })
}

struct StrictJsonDecoder<'i> {
    scan: JsonScanner<'i>,
    duplicates: Vec<String>,
}

/// The path of a value. It is on the stack, so that a text without duplicates needs no allocation.
#[derive(Clone, Copy)]
struct ValuePath<'p> {
    parent: Option<&'p ValuePath<'p>>,
    step: PathStep<'p>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Key(&'p str),
    Index(usize),
}

impl StrictJsonDecoder<'_> {
    fn value(&mut self, depth: usize, path: Option<&ValuePath<'_>>) -> Result<Value, JsonDecodeError> {
        match self.scan.begin_value()? {
            b'{' => self.object(depth + 1, path),
            b'[' => self.array(depth + 1, path),
            b'"' => self.scan.string().map(Value::String),
            b't' => self.scan.literal("true").map(|()| Value::Bool(true)),
            b'f' => self.scan.literal("false").map(|()| Value::Bool(false)),
            b'n' => self.scan.literal("null").map(|()| Value::Null),
            first => number(self.scan.number(first)?),
        }
    }

    fn object(&mut self, depth: usize, path: Option<&ValuePath<'_>>) -> Result<Value, JsonDecodeError> {
        check_depth(depth)?;
        let mut map = Map::new();
        let mut more = self.scan.first_key()?;
        while more {
            let key = self.scan.string()?;
            self.scan.colon()?;
            let told = self.duplicates.len();
            let value = self.value(depth, Some(&ValuePath { parent: path, step: PathStep::Key(&key) }))?;
            match map.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(value),
                Entry::Occupied(mut entry) => {
                    self.duplicate(told, &ValuePath { parent: path, step: PathStep::Key(entry.key()) });
                    entry.insert(value);
                }
            }
            more = self.scan.next_key()?;
        }
        Ok(Value::Object(map))
    }

    fn array(&mut self, depth: usize, path: Option<&ValuePath<'_>>) -> Result<Value, JsonDecodeError> {
        check_depth(depth)?;
        let mut items = Vec::new();
        let mut more = self.scan.first_item()?;
        while more {
            let here = ValuePath { parent: path, step: PathStep::Index(items.len()) };
            items.push(self.value(depth, Some(&here))?);
            more = self.scan.next_item()?;
        }
        Ok(Value::Array(items))
    }

    /// A duplicate key is reported before the problems inside its value.
    #[cold]
    fn duplicate(&mut self, told: usize, path: &ValuePath<'_>) {
        let bytes: usize = self.duplicates.iter().map(String::len).sum();
        if self.duplicates.len() < MAX_STRICT_ERRORS && bytes < MAX_STRICT_BYTES {
            let path = path.to_string();
            if !self.duplicates.contains(&path) {
                self.duplicates.insert(told, path);
            }
        }
    }
}

fn check_depth(depth: usize) -> Result<(), JsonDecodeError> {
    if depth > MAX_DEPTH { Err(JsonDecodeError::Depth) } else { Ok(()) }
}

/// A number of valid syntax.
fn number(text: &str) -> Result<Value, JsonDecodeError> {
    let whole = !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if let (true, Ok(number)) = (whole, text.parse::<i64>()) {
        return Ok(Value::Number(number.into()));
    }
    let float = text.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Value::Number).ok_or_else(|| JsonDecodeError::Number(text.to_owned()))
}

/// The format of strict decoding.
impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            PathStep::Key(key) if self.parent.is_none() => f.write_str(key),
            PathStep::Key(key) => write!(f, ".{key}"),
            PathStep::Index(index) => write!(f, "[{index}]"),
        }
    }
}
