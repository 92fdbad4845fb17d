//! Decodes and checks the response of a webhook.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::WebhookType;
use crate::{
    api::{StatusError, go_format},
    codec::{MediaType, body},
};

const ADMISSION_REVIEW_KIND: &str = "AdmissionReview";

#[derive(Debug, PartialEq)]
pub struct AdmissionDecision {
    pub allowed: bool,
    pub status: Option<Map<String, Value>>,
    /// The bytes of a JSON patch for the object.
    pub patch: Option<Vec<u8>>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

/// Decodes the body of a response.
pub fn decode_review(bytes: &[u8]) -> Result<Value, String> {
    // client-go decodes a body that is not JSON as YAML.
    let value =
        body::decode_response(MediaType::Json, bytes).or_else(|_| body::decode_response(MediaType::Yaml, bytes))?;
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = text("kind");
    let version = text("apiVersion");
    let shown = || String::from_utf8_lossy(bytes);
    match (kind, version) {
        ("", _) => Err(format!("Object 'Kind' is missing in '{}'", shown())),
        (_, "") => Err(format!("Object 'apiVersion' is missing in '{}'", shown())),
        ("Status", "v1") => Err(text("message").to_owned()),
        (ADMISSION_REVIEW_KIND, "admission.k8s.io/v1" | "admission.k8s.io/v1beta1") => Ok(value),
        _ => Err(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )),
    }
}

/// Checks a response against the version and uid of its review.
pub fn check_response(
    answer: &Value,
    sort: WebhookType,
    version: &str,
    uid: &str,
) -> Result<AdmissionDecision, String> {
    let response = answer.get("response").filter(|response| !response.is_null());
    let response = response.ok_or("webhook response was absent")?;
    let text = |field: &str| response.get(field).and_then(Value::as_str);
    let patch = match response.get("patch") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(patch)) => STANDARD.decode(patch).map_err(|error| error.to_string())?,
        // Go also decodes bytes from a list of numbers, which is what kube-rs writes.
        Some(Value::Array(bytes)) => bytes.iter().map(patch_byte).collect::<Result<_, _>>()?,
        Some(other) => return Err(unmarshal_error(other, "patch", "[]uint8")),
    };
    if version == "v1" {
        check_v1_response(answer, sort, uid, !patch.is_empty())?;
    }
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(allowed)) => *allowed,
        Some(other) => return Err(unmarshal_error(other, "allowed", "bool")),
    };
    match text("patchType") {
        Some(other) if other != "JSONPatch" && sort == WebhookType::Mutating && version == "v1" => {
            return Err(format!("unsupported patch type {other:?}"));
        }
        _ => {}
    }
    let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    Ok(AdmissionDecision {
        allowed,
        status: response.get("status").and_then(Value::as_object).cloned(),
        patch: (sort == WebhookType::Mutating && !patch.is_empty()).then_some(patch),
        warnings: warnings.filter_map(|warning| warning.as_str().map(str::to_owned)).collect(),
    })
}

/// Checks that v1 added.
fn check_v1_response(answer: &Value, sort: WebhookType, uid: &str, has_patch: bool) -> Result<(), String> {
    let response = answer.get("response").unwrap_or(&Value::Null);
    let given = response.get("uid").and_then(Value::as_str).unwrap_or_default();
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let version = answer.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version != "admission.k8s.io/v1" {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind={ADMISSION_REVIEW_KIND}, got {version}, Kind={ADMISSION_REVIEW_KIND}"
        ));
    }
    let patch_type = response.get("patchType").filter(|patch_type| !patch_type.is_null());
    match (sort, has_patch, patch_type) {
        (WebhookType::Mutating, true, None) => Err("webhook returned response.patch but not response.patchType".into()),
        (WebhookType::Mutating, false, Some(_)) => {
            Err("webhook returned response.patchType but not response.patch".into())
        }
        (WebhookType::Mutating, true, Some(Value::String(text))) if text.is_empty() => {
            Err("webhook returned invalid response.patchType of \"\"".into())
        }
        (WebhookType::Validating, true, _) => Err("validating webhook may not return response.patch".into()),
        (WebhookType::Validating, false, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        _ => Ok(()),
    }
}

fn patch_byte(number: &Value) -> Result<u8, String> {
    let byte = number.as_u64().and_then(|number| u8::try_from(number).ok());
    byte.ok_or_else(|| unmarshal_error(number, "patch", "uint8"))
}

fn unmarshal_error(found: &Value, field: &str, wanted: &str) -> String {
    let found = go_format::json_kind(found);
    format!("json: cannot unmarshal {found} into Go struct field AdmissionResponse.response.{field} of type {wanted}")
}

/// The refusal of a webhook as the response to the request: the status that it gave, except that a refusal is
/// never a success.
pub fn denied_status(webhook: &str, given: Option<Map<String, Value>>) -> StatusError {
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
    StatusError { verbatim: Some(Box::new(status.into())), ..StatusError::new(code, "", message) }
}

#[cfg(test)]
mod tests;
