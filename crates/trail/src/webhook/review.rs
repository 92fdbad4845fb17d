//! `AdmissionReview`: what an API server asks, and what it is answered.
//!
//! *Guaranteed*: whatever the body is, reading it ends, in bounded time and memory: its length is limited before it comes here, and its depth by the parser. An
//! object stays as it came, since only what is understood can be lost.

use k8s_openapi::{ByteString, api::authentication::v1::UserInfo};
use kube::core::{
    GroupVersionKind, GroupVersionResource,
    admission::{META_API_VERSION_V1, META_KIND, Operation},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Of the call.
    pub uid: String,
    /// Of the object.
    pub kind: GroupVersionKind,
    /// Where it is written to.
    pub resource: GroupVersionResource,
    /// Which part of it; empty for the object itself.
    #[serde(default)]
    pub sub_resource: String,
    /// Of the object; empty if the API server is yet to find one.
    #[serde(default)]
    pub name: String,
    /// Of the object; empty if it has none.
    #[serde(default)]
    pub namespace: String,
    /// What is done with it.
    pub operation: Operation,
    /// Who asks.
    #[serde(default)]
    pub user_info: UserInfo,
    /// As it is asked for.
    #[serde(default)]
    pub object: Value,
    /// As it was.
    #[serde(default)]
    pub old_object: Value,
    /// Whether nothing will come of it.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<R> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    request: R,
}

/// All that an answer needs.
#[derive(Deserialize)]
struct Bare {
    uid: String,
}

/// Why there is nothing to decide.
#[derive(Debug, thiserror::Error)]
pub enum NoReview {
    /// It can be answered at least: the object may pass.
    #[error("the review of the call {uid:?} cannot be read")]
    Answerable {
        /// Of the call.
        uid: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// It cannot even be answered.
    #[error("this is no AdmissionReview of {META_API_VERSION_V1}")]
    Other(#[source] Option<serde_json::Error>),
}

/// The longest id that is answered. They are UUIDs.
const LONGEST_UID: usize = 128;

impl Review {
    /// Reads the body of a call.
    pub fn read(body: &[u8]) -> Result<Self, NoReview> {
        let known = |kind: &str, version: &str| kind == META_KIND && version == META_API_VERSION_V1;
        let good = |uid: &str| !uid.is_empty() && uid.len() <= LONGEST_UID;
        let source = match serde_json::from_slice::<Body<Self>>(body) {
            Ok(body) if known(&body.kind, &body.api_version) && good(&body.request.uid) => return Ok(body.request),
            Ok(_) => return Err(NoReview::Other(None)),
            Err(source) => source,
        };
        match serde_json::from_slice::<Body<Bare>>(body) {
            Ok(body) if known(&body.kind, &body.api_version) && good(&body.request.uid) => {
                Err(NoReview::Answerable { uid: body.request.uid, source })
            }
            _ => Err(NoReview::Other(Some(source))),
        }
    }

    /// The name of the object, or what it will begin with.
    pub fn shown_name(&self) -> &str {
        let given = || self.object.get("metadata")?.get("generateName")?.as_str();
        if self.name.is_empty() { given().unwrap_or_default() } else { &self.name }
    }
}

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It may pass.
    Pass {
        /// With these changes, as operations of a JSON patch. Only a mutating webhook may ask for any.
        operations: Vec<Value>,
    },
    /// It is refused.
    Refuse {
        /// What its writer is told.
        message: String,
        /// For programs: `Invalid`, `Forbidden`, …
        reason: &'static str,
        /// 422 for an object that makes no sense, 403 for a writer who may not.
        code: u16,
    },
}

impl Verdict {
    /// It may pass as it is.
    #[must_use]
    pub fn pass() -> Self {
        Self::Pass { operations: Vec::new() }
    }

    /// It makes no sense.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Refuse { message: message.into(), reason: "Invalid", code: 422 }
    }

    /// Its writer may not ask for it.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::Refuse { message: message.into(), reason: "Forbidden", code: 403 }
    }

    /// The body of the answer to the call with this id. The warnings are shown to the writer, as kubectl does.
    #[must_use]
    pub fn answer(&self, uid: &str, warnings: &[String]) -> Vec<u8> {
        let response = match self {
            Self::Pass { operations } => {
                let patch = (!operations.is_empty()).then(|| serde_json::to_vec(operations).ok()).flatten();
                let patch_type = patch.as_ref().map(|_| "JSONPatch");
                Response { patch_type, patch: patch.map(ByteString), ..Response::new(uid, true, warnings) }
            }
            Self::Refuse { message, reason, code } => {
                let status = Refusal { message, reason, code: *code };
                Response { status: Some(status), ..Response::new(uid, false, warnings) }
            }
        };
        // Strings can always be written.
        serde_json::to_vec(&Answer { kind: META_KIND, api_version: META_API_VERSION_V1, response }).unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    kind: &'static str,
    api_version: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Refusal<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Refusal<'a> {
    message: &'a str,
    reason: &'a str,
    code: u16,
}

impl<'a> Response<'a> {
    fn new(uid: &'a str, allowed: bool, warnings: &'a [String]) -> Self {
        Self { uid, allowed, status: None, patch_type: None, patch: None, warnings }
    }
}

#[cfg(test)]
mod tests;
