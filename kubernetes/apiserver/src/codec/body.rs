//! Decodes the body of a request into an object, with the errors of that.

use serde_json::Value;

use super::{MediaType, json, protobuf, yaml};
use crate::api::{GroupVersion, StatusError, go_format};

/// How much of an undecodable body is shown.
const MAX_SUMMARY_BYTES: usize = 30;

#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// An object, or null if the body was `null` (which Kubernetes treats as an empty object).
    pub value: Value,
    /// The paths of duplicate JSON keys.
    pub duplicates: Vec<String>,
    /// The message about duplicate YAML keys.
    pub yaml: Option<String>,
}

impl Body {
    /// A body without known problems.
    fn without_problems(value: Value) -> Self {
        Self { value, duplicates: Vec::new(), yaml: None }
    }

    /// The violations of strict field validation, in the order of the body: duplicate keys, and the given paths
    /// of unknown fields.
    pub fn strict_problems(&self, bytes: &[u8], unknown: &[String]) -> Vec<String> {
        let duplicates = self.duplicates.iter().map(|path| (path, duplicate_field(path)));
        let mut fields: Vec<_> = duplicates.chain(unknown.iter().map(|path| (path, unknown_field(path)))).collect();
        json::sort_by_body_order(bytes, &mut fields, |(path, _)| path);
        let fields = fields.into_iter().map(|(_, message)| message);
        self.yaml.iter().cloned().chain(fields).take(json::MAX_STRICT_ERRORS).collect()
    }
}

/// Decodes a body that should be an object of a kind.
///
/// # Errors
/// If it cannot be decoded, or its `kind` or `apiVersion` is not a string.
pub fn decode(media: MediaType, bytes: &[u8], gv: &GroupVersion, kind: &str) -> Result<Body, StatusError> {
    read(media, bytes, gv, kind).map_err(|refused| match refused.kind {
        None => unrecognized_status(kind, &refused.why, bytes),
        Some((api_version, found)) => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            cannot_be_handled_status(&found, version, kind, &refused.why)
        }
    })
}

/// Decodes a response of another server. The error is the reason.
///
/// # Errors
/// If it cannot be decoded, or its `kind` or `apiVersion` is not a string.
pub fn decode_response(media: MediaType, bytes: &[u8]) -> Result<Value, String> {
    read(media, bytes, &GroupVersion::new("", ""), "").map(|body| body.value).map_err(|refused| refused.why)
}

/// Decodes the body of a delete, whose errors are shorter.
///
/// # Errors
/// If it cannot be decoded.
pub(super) fn decode_options(media: MediaType, bytes: &[u8]) -> Result<Body, StatusError> {
    read(media, bytes, &GroupVersion::new("", "v1"), "DeleteOptions")
        .map_err(|refused| StatusError::bad_request(refused.why))
}

/// The error of a body that is not an object of any kind.
pub fn unrecognized_status(kind: &str, why: &str, bytes: &[u8]) -> StatusError {
    let summary = summary(bytes);
    StatusError::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})"))
}

/// The error of a body that has a kind, but not the expected one, or that cannot be decoded as that.
///
/// `found` and `version` are those of the body or else of the path.
pub fn cannot_be_handled_status(found: &str, version: &str, wanted: &str, why: &str) -> StatusError {
    let version = go_format::quote(version);
    StatusError::bad_request(format!("{found} in version {version} cannot be handled as a {wanted}: {why}"))
}

/// The message about a duplicate field.
pub fn duplicate_field(path: &str) -> String {
    format!("duplicate field {}", go_format::quote(path))
}

/// The message of strict field validation about an unknown field.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {}", go_format::quote(path))
}

/// The message of strict field validation, for [`cannot_be_handled_status`].
pub fn strict_error(problems: &[String]) -> String {
    format!("strict decoding error: {}", problems.join(", "))
}

/// Strict decoding problems as warnings: one of YAML may have several lines, each of which is a warning.
pub fn warnings(problems: &[String]) -> impl Iterator<Item = &str> {
    problems.iter().flat_map(|problem| match problem.strip_prefix("yaml: unmarshal errors:\n") {
        Some(lines) => WarningLines::Many(lines.lines()),
        None => WarningLines::One(Some(problem)),
    })
}

enum WarningLines<'p> {
    One(Option<&'p str>),
    Many(std::str::Lines<'p>),
}

impl<'p> Iterator for WarningLines<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        match self {
            WarningLines::One(line) => line.take(),
            WarningLines::Many(lines) => lines.next().map(str::trim),
        }
    }
}

struct BodyRefusal {
    why: String,
    /// The version and kind in the body, if known although it cannot be decoded.
    kind: Option<(String, String)>,
}

impl From<String> for BodyRefusal {
    fn from(why: String) -> Self {
        Self { why, kind: None }
    }
}

fn read(media: MediaType, bytes: &[u8], gv: &GroupVersion, kind: &str) -> Result<Body, BodyRefusal> {
    let parse_error = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let body = match media {
        MediaType::Json => {
            let decoded = json::decode(bytes).map_err(|error| parse_error(error.to_string()))?;
            Body { duplicates: decoded.duplicates, ..Body::without_problems(decoded.value) }
        }
        MediaType::Yaml => {
            let decoded = yaml::decode(bytes).map_err(|error| error.to_string())?;
            Body { yaml: yaml::strict_error(&decoded.duplicates), ..Body::without_problems(decoded.value) }
        }
        MediaType::Protobuf => {
            let refused =
                |refused: protobuf::ProtobufRefusal| BodyRefusal { why: refused.error.to_string(), kind: refused.kind };
            return protobuf::decode(bytes, gv, kind).map(Body::without_problems).map_err(refused);
        }
    };
    check_kind(&body.value).map_err(parse_error)?;
    Ok(body)
}

/// Checks the types of `kind` and `apiVersion`.
fn check_kind(value: &Value) -> Result<(), String> {
    let object = match value {
        Value::Object(object) => object,
        Value::Null => return Ok(()),
        other => {
            let fields = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type {fields}",
                go_format::json_kind(other)
            ));
        }
    };
    for field in ["apiVersion", "kind"] {
        match object.get(field) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let found = go_format::json_kind(other);
                return Err(format!("json: cannot unmarshal {found} into Go struct field .{field} of type string"));
            }
        }
    }
    Ok(())
}

fn summary(bytes: &[u8]) -> String {
    let (shown, rest) = bytes.split_at(bytes.len().min(MAX_SUMMARY_BYTES));
    let more = if rest.is_empty() { "" } else { " ..." };
    match shown.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned() + more,
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}
