//! `AdmissionReview`: the request of an API server, and the response.
//!
//! *Guaranteed*: parsing any body takes bounded time and memory: the length is limited before, and the depth by
//! the parser. The object is kept as untyped JSON, so that no field is lost.

use k8s_openapi::{ByteString, api::authentication::v1::UserInfo};
use kube::core::{
    GroupVersionKind, GroupVersionResource,
    admission::{META_API_VERSION_V1, META_KIND, Operation},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The request of an API server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRequest {
    /// The id of the call.
    pub uid: String,
    /// The kind of the object.
    pub kind: GroupVersionKind,
    /// The resource that is written to.
    pub resource: GroupVersionResource,
    /// The subresource; empty for the object itself.
    #[serde(default)]
    pub sub_resource: String,
    /// The name of the object; empty if the API server is yet to generate one.
    #[serde(default)]
    pub name: String,
    /// The namespace of the object; empty if it is cluster-scoped.
    #[serde(default)]
    pub namespace: String,
    /// The operation.
    pub operation: Operation,
    /// The user who makes the request.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The new object.
    #[serde(default)]
    pub object: Value,
    /// The existing object.
    #[serde(default)]
    pub old_object: Value,
    /// Whether the request is a dry run.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewEnvelope<R> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    request: R,
}

/// The fields that a response needs.
#[derive(Deserialize)]
struct ReviewUid {
    uid: String,
}

/// The reason why a body is not a valid review.
#[derive(Debug, thiserror::Error)]
pub enum ReviewParseError {
    /// The id is readable, so that the call can be answered and the object passes.
    #[error("failed to parse the AdmissionReview of request {uid:?}")]
    Answerable {
        /// The id of the call.
        uid: String,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// The body is no review at all, so that there is no valid response.
    #[error("the request body is not an AdmissionReview of {META_API_VERSION_V1}")]
    NotAReview(#[source] Option<serde_json::Error>),
}

/// The longest id that is echoed. They are UUIDs.
const MAX_UID_LENGTH: usize = 128;

impl ReviewRequest {
    /// Parses the body of a call.
    pub fn parse(body: &[u8]) -> Result<Self, ReviewParseError> {
        let known = |kind: &str, version: &str| kind == META_KIND && version == META_API_VERSION_V1;
        let good = |uid: &str| !uid.is_empty() && uid.len() <= MAX_UID_LENGTH;
        let source = match serde_json::from_slice::<ReviewEnvelope<Self>>(body) {
            Ok(body) if known(&body.kind, &body.api_version) && good(&body.request.uid) => return Ok(body.request),
            Ok(_) => return Err(ReviewParseError::NotAReview(None)),
            Err(source) => source,
        };
        match serde_json::from_slice::<ReviewEnvelope<ReviewUid>>(body) {
            Ok(body) if known(&body.kind, &body.api_version) && good(&body.request.uid) => {
                Err(ReviewParseError::Answerable { uid: body.request.uid, source })
            }
            _ => Err(ReviewParseError::NotAReview(Some(source))),
        }
    }

    /// The name of the object, or its `generateName`.
    pub fn display_name(&self) -> &str {
        let given = || self.object.get("metadata")?.get("generateName")?.as_str();
        if self.name.is_empty() { given().unwrap_or_default() } else { &self.name }
    }
}

/// The decision about an object.
#[derive(Clone, Debug, PartialEq)]
pub enum ReviewDecision {
    /// The object passes.
    Pass {
        /// The JSON Patch operations. Only a mutating webhook may return any.
        operations: Vec<Value>,
    },
    /// The object is refused.
    Refuse {
        /// The message for its writer.
        message: String,
        /// The machine-readable reason: `Invalid`, `Forbidden`, …
        reason: &'static str,
        /// The HTTP status code: 422 for an invalid object, 403 for a writer without the right.
        code: u16,
    },
}

impl ReviewDecision {
    /// The object passes unchanged.
    #[must_use]
    pub fn pass() -> Self {
        Self::Pass { operations: Vec::new() }
    }

    /// The object is invalid.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Refuse { message: message.into(), reason: "Invalid", code: 422 }
    }

    /// The writer lacks the right.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::Refuse { message: message.into(), reason: "Forbidden", code: 403 }
    }

    /// The body of the response to the call with this id. kubectl shows the warnings to the writer.
    #[must_use]
    pub fn to_response_body(&self, uid: &str, warnings: &[String]) -> Vec<u8> {
        let response = match self {
            Self::Pass { operations } => {
                let patch = (!operations.is_empty()).then(|| serde_json::to_vec(operations).ok()).flatten();
                let patch_type = patch.as_ref().map(|_| "JSONPatch");
                ReviewResponse { patch_type, patch: patch.map(ByteString), ..ReviewResponse::new(uid, true, warnings) }
            }
            Self::Refuse { message, reason, code } => {
                let status = RefusalStatus { message, reason, code: *code };
                ReviewResponse { status: Some(status), ..ReviewResponse::new(uid, false, warnings) }
            }
        };
        // Strings always serialize.
        serde_json::to_vec(&ReviewResponseEnvelope { kind: META_KIND, api_version: META_API_VERSION_V1, response })
            .unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewResponseEnvelope<'a> {
    kind: &'static str,
    api_version: &'static str,
    response: ReviewResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewResponse<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<RefusalStatus<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct RefusalStatus<'a> {
    message: &'a str,
    reason: &'a str,
    code: u16,
}

impl<'a> ReviewResponse<'a> {
    fn new(uid: &'a str, allowed: bool, warnings: &'a [String]) -> Self {
        Self { uid, allowed, status: None, patch_type: None, patch: None, warnings }
    }
}

#[cfg(test)]
mod tests;
