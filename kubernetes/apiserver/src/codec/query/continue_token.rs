//! Continue tokens of paged lists, in kube-apiserver's format.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;

use crate::{api::StatusError, codec::json};

/// Go's `RawURLEncoding`, which ignores trailing bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

const TOKEN_API_VERSION: &str = "meta.k8s.io/v1";

/// The position of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The revision of all pages; `None` for the newest, after that revision has expired.
    pub resource_version: Option<u64>,
    /// The first key of the page, below the list's own prefix: `name\0`, or `namespace/name\0` across
    /// namespaces.
    pub start: String,
}

impl ContinueToken {
    pub fn after_key(resource_version: Option<u64>, key: &str) -> Self {
        Self { resource_version, start: format!("{key}\0") }
    }

    /// The `continue` of a list's metadata.
    pub fn encode(&self) -> String {
        let version = self.resource_version.and_then(|version| i64::try_from(version).ok()).unwrap_or(-1);
        let start = Value::from(self.start.as_str());
        BASE64.encode(format!(r#"{{"v":"{TOKEN_API_VERSION}","rv":{version},"start":{start}}}"#))
    }

    /// Decodes a token of a client.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's message.
    pub fn decode(token: &str) -> Result<Self, StatusError> {
        let bad =
            |why: String| StatusError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let data = BASE64.decode(token).map_err(|error| bad(base64_error(&error, token)))?;
        let value = json::decode(&data).map_err(|error| bad(error.to_string()))?.value;
        parse_token(&value).map_err(bad)
    }
}

fn parse_token(token: &Value) -> Result<ContinueToken, String> {
    if token.get("v").and_then(Value::as_str) != Some(TOKEN_API_VERSION) {
        let version = token.get("v").and_then(Value::as_str).unwrap_or_default();
        return Err(format!("server does not recognize this encoded version {version}"));
    }
    let version = token.get("rv").and_then(Value::as_i64).unwrap_or(0);
    if version == 0 {
        return Err(format!("incorrect encoded start resourceVersion (version {TOKEN_API_VERSION})"));
    }
    let start = token.get("start").and_then(Value::as_str).unwrap_or_default();
    if start.is_empty() {
        return Err(format!("encoded start key empty (version {TOKEN_API_VERSION})"));
    }
    if !is_clean(start) {
        return Err(start.to_owned());
    }
    Ok(ContinueToken { resource_version: u64::try_from(version).ok(), start: start.to_owned() })
}

/// Whether a path stays below its root and has no empty segments, so that a token cannot reach other keys.
fn is_clean(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').all(|step| !matches!(step, "" | "." | ".."))
}

fn base64_error(error: &base64::DecodeError, token: &str) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => token.len(),
    };
    format!("illegal base64 data at input byte {at}")
}
