//! What a webhook answers, and whether it is an answer.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::Sort;
use crate::{
    api::{Status, go},
    codec::{Media, body},
};

const KIND: &str = "AdmissionReview";

/// An answer that makes sense.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    /// Whether the request may go on.
    pub allowed: bool,
    /// Why not.
    pub status: Option<Map<String, Value>>,
    /// What to do to the object: the bytes of a JSON patch.
    pub patch: Option<Vec<u8>>,
    /// What to tell the caller.
    pub warnings: Vec<String>,
}

/// Reads the body of an answer.
pub fn read(bytes: &[u8]) -> Result<Value, String> {
    // client-go takes what is no JSON for YAML.
    let value = body::decode_answer(Media::Json, bytes).or_else(|_| body::decode_answer(Media::Yaml, bytes))?;
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let shown = || String::from_utf8_lossy(bytes);
    match (kind, version) {
        ("", _) => Err(format!("Object 'Kind' is missing in '{}'", shown())),
        (_, "") => Err(format!("Object 'apiVersion' is missing in '{}'", shown())),
        ("Status", "v1") => Err(text("message").to_owned()),
        (KIND, "admission.k8s.io/v1" | "admission.k8s.io/v1beta1") => Ok(value),
        _ => Err(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )),
    }
}

/// Checks an answer to the review of this version and id.
pub fn check(answer: &Value, sort: Sort, version: &str, uid: &str) -> Result<Verdict, String> {
    let response = answer.get("response").filter(|response| !response.is_null());
    let response = response.ok_or("webhook response was absent")?;
    let text = |field: &str| response.get(field).and_then(Value::as_str);
    let patch = match response.get("patch") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(patch)) => STANDARD.decode(patch).map_err(|error| error.to_string())?,
        // Go reads bytes from a list of numbers, too, which is what kube-rs writes.
        Some(Value::Array(bytes)) => bytes.iter().map(byte).collect::<Result<_, _>>()?,
        Some(other) => return Err(wrong_type(other, "patch", "[]uint8")),
    };
    if version == "v1" {
        check_v1(answer, sort, uid, !patch.is_empty())?;
    }
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(allowed)) => *allowed,
        Some(other) => return Err(wrong_type(other, "allowed", "bool")),
    };
    match text("patchType") {
        Some(other) if other != "JSONPatch" && sort == Sort::Mutating && version == "v1" => {
            return Err(format!("unsupported patch type {other:?}"));
        }
        _ => {}
    }
    let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    Ok(Verdict {
        allowed,
        status: response.get("status").and_then(Value::as_object).cloned(),
        patch: (sort == Sort::Mutating && !patch.is_empty()).then_some(patch),
        warnings: warnings.filter_map(|warning| warning.as_str().map(str::to_owned)).collect(),
    })
}

/// What was not checked before v1.
fn check_v1(answer: &Value, sort: Sort, uid: &str, has_patch: bool) -> Result<(), String> {
    let response = answer.get("response").unwrap_or(&Value::Null);
    let given = response.get("uid").and_then(Value::as_str).unwrap_or_default();
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let version = answer.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version != "admission.k8s.io/v1" {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind={KIND}, got {version}, Kind={KIND}"
        ));
    }
    let patch_type = response.get("patchType").filter(|patch_type| !patch_type.is_null());
    match (sort, has_patch, patch_type) {
        (Sort::Mutating, true, None) => Err("webhook returned response.patch but not response.patchType".into()),
        (Sort::Mutating, false, Some(_)) => Err("webhook returned response.patchType but not response.patch".into()),
        (Sort::Mutating, true, Some(Value::String(text))) if text.is_empty() => {
            Err("webhook returned invalid response.patchType of \"\"".into())
        }
        (Sort::Validating, true, _) => Err("validating webhook may not return response.patch".into()),
        (Sort::Validating, false, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        _ => Ok(()),
    }
}

fn byte(number: &Value) -> Result<u8, String> {
    let byte = number.as_u64().and_then(|number| u8::try_from(number).ok());
    byte.ok_or_else(|| wrong_type(number, "patch", "uint8"))
}

fn wrong_type(found: &Value, field: &str, wanted: &str) -> String {
    let found = go::json_kind(found);
    format!("json: cannot unmarshal {found} into Go struct field AdmissionResponse.response.{field} of type {wanted}")
}

/// The refusal of a webhook as the answer to the request: what it says, except that a refusal is never a success.
pub fn refusal(webhook: &str, given: Option<Map<String, Value>>) -> Status {
    let mut status = given.unwrap_or_default();
    let text = |status: &Map<String, Value>, field: &str| {
        status.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (text(&status, "message").as_str(), text(&status, "reason").as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", said) | (said, _) => format!("{denied}: {said}"),
    };
    let code = status.get("code").and_then(Value::as_u64).unwrap_or(0);
    let code = u16::try_from(code.max(400)).ok().and_then(|code| http::StatusCode::from_u16(code).ok());
    let code = code.unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    if matches!(text(&status, "status").as_str(), "" | "Success") {
        status.insert("status".into(), "Failure".into());
    }
    status.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
    status.entry("metadata").or_insert_with(|| json!({}));
    status.insert("kind".into(), "Status".into());
    status.insert("apiVersion".into(), "v1".into());
    status.insert("message".into(), message.as_str().into());
    status.insert("code".into(), code.as_u16().into());
    Status { verbatim: Some(Box::new(status.into())), ..Status::new(code, "", message) }
}

#[cfg(test)]
mod tests;
