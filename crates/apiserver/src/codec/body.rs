//! The body of a request as an object, and the refusals that it may earn.

use serde_json::Value;

use super::{Media, go, json, yaml};
use crate::api::Status;

/// So much of a body is shown when it cannot be read.
const SUMMARY: usize = 30;

/// What a body holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// An object, or null where the body was `null` (which Kubernetes takes as an empty object).
    pub value: Value,
    /// What strict field validation objects to, as in its message: keys that are there twice.
    pub strict: Vec<String>,
}

/// Reads a body that should hold an object of `kind`.
///
/// # Errors
/// If it cannot be read, or its `kind` or `apiVersion` is no text.
pub fn decode(media: Media, bytes: &[u8], kind: &str) -> Result<Body, Status> {
    read(media, bytes).map_err(|why| unrecognized(kind, &why, bytes))
}

/// Reads a body without saying what it should have held: `DeleteOptions` are refused so.
///
/// # Errors
/// If it cannot be read.
pub fn decode_plain(media: Media, bytes: &[u8]) -> Result<Body, Status> {
    read(media, bytes).map_err(Status::bad_request)
}

/// A body that holds no object of any kind.
pub fn unrecognized(kind: &str, why: &str, bytes: &[u8]) -> Status {
    let summary = summary(bytes);
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})"))
}

/// A body that says what kind it is of, but is none of the kind that is wanted here.
///
/// `found` and `version` are what the body says, or what the path says where the body does not.
pub fn cannot_be_handled(found: &str, version: &str, wanted: &str, why: &str) -> Status {
    let version = go::quote(version);
    Status::bad_request(format!("{found} in version {version} cannot be handled as a {wanted}: {why}"))
}

/// The message of strict field validation, for [`cannot_be_handled`].
pub fn strict_error(problems: &[String]) -> String {
    format!("strict decoding error: {}", problems.join(", "))
}

/// Problems of strict decoding as warnings: one of YAML may hold several lines, each a warning.
pub fn warnings(problems: &[String]) -> impl Iterator<Item = &str> {
    problems.iter().flat_map(|problem| match problem.strip_prefix("yaml: unmarshal errors:\n") {
        Some(lines) => Lines::Many(lines.lines()),
        None => Lines::One(Some(problem)),
    })
}

enum Lines<'p> {
    One(Option<&'p str>),
    Many(std::str::Lines<'p>),
}

impl<'p> Iterator for Lines<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        match self {
            Lines::One(line) => line.take(),
            Lines::Many(lines) => lines.next().map(str::trim),
        }
    }
}

fn read(media: Media, bytes: &[u8]) -> Result<Body, String> {
    let parse_error = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let body = match media {
        Media::Json => {
            let decoded = json::decode(bytes).map_err(|error| parse_error(error.to_string()))?;
            let strict = decoded.duplicates.iter().map(|path| format!("duplicate field {}", go::quote(path)));
            Body { value: decoded.value, strict: strict.collect() }
        }
        Media::Yaml => {
            let decoded = yaml::decode(bytes).map_err(|error| error.to_string())?;
            Body { value: decoded.value, strict: yaml::strict_error(&decoded.duplicates).into_iter().collect() }
        }
        Media::Protobuf => return Err("not yet".to_owned()),
    };
    check_kind(&body.value).map_err(parse_error)?;
    Ok(body)
}

/// Whether `kind` and `apiVersion` can be read from a value.
fn check_kind(value: &Value) -> Result<(), String> {
    let object = match value {
        Value::Object(object) => object,
        Value::Null => return Ok(()),
        other => {
            let fields = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
            return Err(format!("json: cannot unmarshal {} into Go value of type {fields}", type_name(other)));
        }
    };
    for field in ["apiVersion", "kind"] {
        match object.get(field) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let found = type_name(other);
                return Err(format!("json: cannot unmarshal {found} into Go struct field .{field} of type string"));
            }
        }
    }
    Ok(())
}

/// As Go's encoding/json names what it found.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn summary(bytes: &[u8]) -> String {
    let (shown, rest) = bytes.split_at(bytes.len().min(SUMMARY));
    let more = if rest.is_empty() { "" } else { " ..." };
    match shown.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned() + more,
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}
