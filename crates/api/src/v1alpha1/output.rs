//! Outputs: the backend that a pipeline sends to.

use std::{collections::BTreeMap, fmt};

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    sending::{QueueOptions, RetryOptions},
    value::{ValueFrom, ValueType, duration},
};

/// The backend that the pipeline sends to. `otlp` is required.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.otlp)", "an output must be set: `otlp`"))]
pub struct PipelineOutput {
    /// A backend that receives OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpOutput>,
}

/// A backend that receives OTLP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.path) || (has(self.protocol) && self.protocol == 'http')",
    "`path` is only allowed with `protocol: http`"
))]
pub struct OtlpOutput {
    /// Protocol of the backend: `grpc` (default) or `http`.
    #[serde(default)]
    pub protocol: OtlpProtocol,
    /// Address of the backend. With `protocol: grpc`: `host:port`, optionally prefixed with `https://` or
    /// `http://` to turn TLS on or off. With `protocol: http`: a URL such as
    /// `https://backend.example.com:4318`.
    pub endpoint: ValueType,
    /// Path that is appended to the URL of the endpoint, instead of `/v1/traces`, `/v1/logs` or `/v1/metrics`.
    /// Only with `protocol: http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// Authentication to the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationOptions>,
    /// Headers that are added to every request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub headers: Vec<RequestHeader>,
    /// TLS settings of the connection. By default the connection uses TLS, and the certificate of the backend
    /// must be signed by a well-known certificate authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
    /// Compression of requests: `gzip`, `snappy`, `zstd` or `none`. Default: `spec.defaults.compression` of the
    /// Telemetry, or else `gzip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<OtlpCompression>,
    /// Timeout of one attempt to send a request, such as `10s`. `0s` means no timeout. Default:
    /// `spec.defaults.timeout` of the Telemetry, or else 5s with gRPC and 30s with HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Retries of requests that failed with a retryable error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryOptions>,
    /// Queue of each collector for this backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueOptions>,
}

/// Transport protocol of OTLP requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtlpProtocol {
    /// OTLP over gRPC, with TLS or without
    #[default]
    Grpc,
    /// OTLP over HTTP, encoded as Protobuf
    Http,
}

/// Compression of requests to the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtlpCompression {
    /// Requests are sent without compression.
    None,
    /// Requests are compressed with gzip.
    Gzip,
    /// Requests are compressed with Snappy.
    Snappy,
    /// Requests are compressed with Zstandard.
    Zstd,
}

/// Authentication to a server. Exactly one method must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.basic), has(self.oauth2), has(self.bearer)].exists_one(set, set)",
    "set exactly one of `basic`, `oauth2` and `bearer`"
))]
pub struct AuthenticationOptions {
    /// HTTP basic authentication with a user name and a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<BasicAuthOptions>,
    /// Tokens from the client credentials flow of OAuth 2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2Options>,
    /// A static token in the header `Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<BearerAuthOptions>,
}

/// HTTP basic authentication with a user name and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuthOptions {
    /// User name. It must not contain `:`.
    pub user: ValueType,
    /// Password of the given user.
    pub password: ValueType,
}

/// The client credentials flow of OAuth 2.0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2Options {
    /// URL of the token endpoint.
    #[serde(rename = "tokenURL")]
    pub token_url: ValueType,
    /// ID of the OAuth 2.0 client.
    #[serde(rename = "clientID")]
    pub client_id: ValueType,
    /// Secret of the OAuth 2.0 client.
    pub client_secret: ValueType,
    /// Scopes of the requested token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub scopes: Vec<String>,
    /// Additional parameters of the token request, such as `audience`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub params: BTreeMap<String, String>,
    /// TLS settings of the connection to the token endpoint. By default its certificate must be signed by a
    /// well-known certificate authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
}

/// A static token in the header `Authorization`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BearerAuthOptions {
    /// Token that is sent in the header `Authorization: Bearer …`.
    pub token: ValueType,
}

/// A header that is added to every request.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.value) != has(self.valueFrom)", "set either `value` or `valueFrom`"))]
pub struct RequestHeader {
    /// Name of the header, in upper or lower case.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"))]
    pub name: String,
    /// Value of the header. Everyone who can read the resource can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub value: Option<String>,
    /// Source of the value of the header: a Secret or a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ValueFrom>,
    /// Prefix of the value, such as `Bearer` or `Api-Token`. A space separates it from the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub prefix: Option<String>,
}

impl RequestHeader {
    /// The value, or the reference to it.
    pub fn source(&self) -> ValueType {
        ValueType { value: self.value.clone(), value_from: self.value_from.clone() }
    }
}

impl fmt::Debug for RequestHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("name", &self.name).field("value", &self.source()).finish_non_exhaustive()
    }
}

/// TLS settings of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.cert) == has(self.key)", "set both `cert` and `key`, or neither"))]
pub struct TlsOptions {
    /// Disables TLS for this connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Skips verification of the server certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_verify: bool,
    /// PEM bundle of the certificate authorities that may sign the server certificate. Default: the well-known
    /// certificate authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<ValueType>,
    /// PEM client certificate, followed by its intermediate certificates. Requires `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<ValueType>,
    /// PEM private key of the client certificate. Requires `cert`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ValueType>,
    /// Server name that is sent to the server and that its certificate must match. Default: the host of the
    /// endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub server_name_override: Option<String>,
}
