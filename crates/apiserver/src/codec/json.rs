//! JSON: bytes to a value and back.
//!
//! [`decode`] reads in one pass and finds keys that are there twice. What is wrong is said in the words of Go's encoding/json. As
//! there, a later key wins, bytes that are not UTF-8 become U+FFFD and whole numbers that fit stay whole. Memory is bounded by the
//! length of the input, depth by [`MAX_DEPTH`].

mod encode;
mod order;
mod scan;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Number, Value, map::Entry};

use self::scan::Scanner;
use crate::api::go;

pub use self::{
    encode::{encode, encode_pretty, write},
    order::in_order_of,
};

/// Values may be nested this deep. Go takes 10 000; what is stored here is read back by serde_json, which takes 128 levels, and an
/// object is found a few levels deeper in an AdmissionReview and in managedFields.
pub const MAX_DEPTH: usize = 100;

/// No more problems than this are told of one body, as in kube-apiserver.
pub const MAX_STRICT_ERRORS: usize = 100;

/// Keys are long where somebody wants to fill memory with messages; the first problem is told in any case.
const MAX_STRICT_BYTES: usize = 64 << 10;

/// What a text holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The value; of a key that is there twice, the last one.
    pub value: Value,
    /// Keys that are there more than once: `spec.containers[0].name`.
    pub duplicates: Vec<String>,
}

/// What is wrong with a text, in the words of Go's encoding/json.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("unexpected end of JSON input")]
    End,
    #[error("invalid character {} {context}", go::quote_byte(*.byte))]
    Character { byte: u8, context: &'static str },
    #[error("invalid character {} in literal {literal} (expecting {})", go::quote_byte(*.byte), go::quote_byte(*.expected))]
    Literal { byte: u8, literal: &'static str, expected: u8 },
    #[error("exceeded max depth")]
    Depth,
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Number(String),
}

/// Reads one value, with nothing but white space around it.
///
/// # Errors
/// If it is not JSON or nested too deep.
pub fn decode(input: &[u8]) -> Result<Decoded, Error> {
    decode_within(input, 0)
}

/// Reads one value that is part of another one, so many levels deep.
///
/// # Errors
/// If it is not JSON or nested too deep.
pub fn decode_within(input: &[u8], depth: usize) -> Result<Decoded, Error> {
    let mut decoder = Decoder { scan: Scanner::new(input), duplicates: Vec::new() };
    let value = decoder.value(depth, None)?;
    decoder.scan.end()?;
    Ok(Decoded { value, duplicates: decoder.duplicates })
}

struct Decoder<'i> {
    scan: Scanner<'i>,
    duplicates: Vec<String>,
}

/// Where a value is. It lives on the stack, so that a text without duplicates pays nothing for it.
#[derive(Clone, Copy)]
struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

impl Decoder<'_> {
    fn value(&mut self, depth: usize, path: Option<&Path<'_>>) -> Result<Value, Error> {
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

    fn object(&mut self, depth: usize, path: Option<&Path<'_>>) -> Result<Value, Error> {
        check_depth(depth)?;
        let mut map = Map::new();
        let mut more = self.scan.first_key()?;
        while more {
            let key = self.scan.string()?;
            self.scan.colon()?;
            let told = self.duplicates.len();
            let value = self.value(depth, Some(&Path { parent: path, step: Step::Key(&key) }))?;
            match map.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(value),
                Entry::Occupied(mut entry) => {
                    self.duplicate(told, &Path { parent: path, step: Step::Key(entry.key()) });
                    entry.insert(value);
                }
            }
            more = self.scan.next_key()?;
        }
        Ok(Value::Object(map))
    }

    fn array(&mut self, depth: usize, path: Option<&Path<'_>>) -> Result<Value, Error> {
        check_depth(depth)?;
        let mut items = Vec::new();
        let mut more = self.scan.first_item()?;
        while more {
            let here = Path { parent: path, step: Step::Index(items.len()) };
            items.push(self.value(depth, Some(&here))?);
            more = self.scan.next_item()?;
        }
        Ok(Value::Array(items))
    }

    /// A key is told before what is wrong inside its value.
    #[cold]
    fn duplicate(&mut self, told: usize, path: &Path<'_>) {
        let bytes: usize = self.duplicates.iter().map(String::len).sum();
        if self.duplicates.len() < MAX_STRICT_ERRORS && bytes < MAX_STRICT_BYTES {
            let path = path.to_string();
            if !self.duplicates.contains(&path) {
                self.duplicates.insert(told, path);
            }
        }
    }
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH { Err(Error::Depth) } else { Ok(()) }
}

/// A number whose form was checked.
fn number(text: &str) -> Result<Value, Error> {
    let whole = !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if let (true, Ok(number)) = (whole, text.parse::<i64>()) {
        return Ok(Value::Number(number.into()));
    }
    let float = text.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Value::Number).ok_or_else(|| Error::Number(text.to_owned()))
}

/// As strict decoding names it.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Key(key) if self.parent.is_none() => f.write_str(key),
            Step::Key(key) => write!(f, ".{key}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}
