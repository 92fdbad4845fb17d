//! The body of a request as an object, and the refusals that it may earn.

use serde_json::Value;

use super::{Media, json, protobuf, yaml};
use crate::api::{GroupVersion, Status, go};

/// So much of a body is shown when it cannot be read.
const SUMMARY: usize = 30;

/// What a body holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// An object, or null where the body was `null` (which Kubernetes takes as an empty object).
    pub value: Value,
    /// Keys of JSON that are there more than once, as paths.
    pub duplicates: Vec<String>,
    /// The same of YAML, as one message.
    pub yaml: Option<String>,
}

impl Body {
    /// A body of which nothing but its value is known.
    fn plain(value: Value) -> Self {
        Self { value, duplicates: Vec::new(), yaml: None }
    }

    /// What strict field validation objects to, in the order of the body: keys that are there twice, and fields that the schema
    /// does not know, which are given by their paths.
    pub fn problems(&self, bytes: &[u8], unknown: &[String]) -> Vec<String> {
        let duplicates = self.duplicates.iter().map(|path| (path, duplicate_field(path)));
        let mut fields: Vec<_> = duplicates.chain(unknown.iter().map(|path| (path, unknown_field(path)))).collect();
        json::in_order_of(bytes, &mut fields, |(path, _)| path);
        let fields = fields.into_iter().map(|(_, message)| message);
        self.yaml.iter().cloned().chain(fields).take(json::MAX_STRICT_ERRORS).collect()
    }
}

/// Reads a body that should hold an object of a kind.
///
/// # Errors
/// If it cannot be read, or its `kind` or `apiVersion` is no text.
pub fn decode(media: Media, bytes: &[u8], gv: &GroupVersion, kind: &str) -> Result<Body, Status> {
    read(media, bytes, gv, kind).map_err(|refused| match refused.kind {
        None => unrecognized(kind, &refused.why, bytes),
        Some((api_version, found)) => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            cannot_be_handled(&found, version, kind, &refused.why)
        }
    })
}

/// Reads what somebody else answered. The error is why it cannot be read.
///
/// # Errors
/// If it cannot be read, or its `kind` or `apiVersion` is no text.
pub fn decode_answer(media: Media, bytes: &[u8]) -> Result<Value, String> {
    read(media, bytes, &GroupVersion::new("", ""), "").map(|body| body.value).map_err(|refused| refused.why)
}

/// Reads the body of a delete, which is refused in fewer words.
///
/// # Errors
/// If it cannot be read.
pub(super) fn decode_options(media: Media, bytes: &[u8]) -> Result<Body, Status> {
    read(media, bytes, &GroupVersion::new("", "v1"), "DeleteOptions")
        .map_err(|refused| Status::bad_request(refused.why))
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

/// A field that is there more than once.
pub fn duplicate_field(path: &str) -> String {
    format!("duplicate field {}", go::quote(path))
}

/// What strict field validation says of a field that the schema does not know.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {}", go::quote(path))
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

struct Refused {
    why: String,
    /// What the body says that it is, where that is known although it cannot be read.
    kind: Option<(String, String)>,
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self { why, kind: None }
    }
}

fn read(media: Media, bytes: &[u8], gv: &GroupVersion, kind: &str) -> Result<Body, Refused> {
    let parse_error = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let body = match media {
        Media::Json => {
            let decoded = json::decode(bytes).map_err(|error| parse_error(error.to_string()))?;
            Body { duplicates: decoded.duplicates, ..Body::plain(decoded.value) }
        }
        Media::Yaml => {
            let decoded = yaml::decode(bytes).map_err(|error| error.to_string())?;
            Body { yaml: yaml::strict_error(&decoded.duplicates), ..Body::plain(decoded.value) }
        }
        Media::Protobuf => {
            let refused = |refused: protobuf::Refused| Refused { why: refused.error.to_string(), kind: refused.kind };
            return protobuf::decode(bytes, gv, kind).map(Body::plain).map_err(refused);
        }
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
            return Err(format!("json: cannot unmarshal {} into Go value of type {fields}", go::json_kind(other)));
        }
    };
    for field in ["apiVersion", "kind"] {
        match object.get(field) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let found = go::json_kind(other);
                return Err(format!("json: cannot unmarshal {found} into Go struct field .{field} of type string"));
            }
        }
    }
    Ok(())
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
