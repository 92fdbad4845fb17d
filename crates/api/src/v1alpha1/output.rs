//! Where a pipeline sends to.

use std::{collections::BTreeMap, fmt};

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    sending::{QueueOptions, RetryOptions},
    value::{ValueFrom, ValueType, duration},
};

/// Where a pipeline sends to. One output has to be set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.otlp)", "an output must be set: `otlp`"))]
pub struct PipelineOutput {
    /// A backend that speaks OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpOutput>,
}

/// A backend that speaks OTLP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.path) || (has(self.protocol) && self.protocol == 'http')",
    "`path` has a meaning only with `protocol: http`"
))]
pub struct OtlpOutput {
    /// How to speak to it: `grpc` (default) or `http`.
    #[serde(default)]
    pub protocol: OtlpProtocol,
    /// Its address: `host:port`, with `https://` or `http://` before it if that shall decide on TLS. With
    /// `protocol: http` a whole URL such as `https://backend.example.com:4318`.
    pub endpoint: ValueType,
    /// With `protocol: http`, the path of requests, instead of `/v1/traces`, `/v1/logs` or `/v1/metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// Who we are to the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationOptions>,
    /// Headers that every request has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub headers: Vec<RequestHeader>,
    /// How the connection is secured. Without it TLS is used, and the backend's certificate must be signed by a
    /// well-known authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
    /// How requests are compressed: `gzip` (unless Telemetry has another default), `snappy`, `zstd` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<OtlpCompression>,
    /// How long one attempt may take, such as `10s`; `0s` is no limit. Without it 5s with gRPC and 30s with
    /// HTTP, unless Telemetry has another default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// What happens to a request that failed and may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryOptions>,
    /// What is held for the backend in each collector while it cannot take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueOptions>,
}

/// How to speak OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtlpProtocol {
    /// gRPC
    #[default]
    Grpc,
    /// Protobuf over HTTP
    Http,
}

/// How requests are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtlpCompression {
    /// Not at all
    None,
    /// gzip
    Gzip,
    /// Snappy
    Snappy,
    /// Zstandard
    Zstd,
}

/// Who we are to a backend: exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.basic), has(self.oauth2), has(self.bearer)].exists_one(set, set)",
    "set exactly one of `basic`, `oauth2` and `bearer`"
))]
pub struct AuthenticationOptions {
    /// A user and a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<BasicAuthOptions>,
    /// Tokens by the client credentials flow of OAuth 2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2Options>,
    /// A token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<BearerAuthOptions>,
}

/// A user and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuthOptions {
    /// The user.
    pub user: ValueType,
    /// The password.
    pub password: ValueType,
}

/// The client credentials flow of OAuth 2.0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2Options {
    /// Where tokens are issued: a whole URL.
    #[serde(rename = "tokenURL")]
    pub token_url: ValueType,
    /// The client's id.
    #[serde(rename = "clientID")]
    pub client_id: ValueType,
    /// The client's secret.
    pub client_secret: ValueType,
    /// What the token shall allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub scopes: Vec<String>,
    /// More parameters of the request for a token, such as `audience`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub params: BTreeMap<String, String>,
    /// How the connection to where tokens are issued is secured, if a well-known authority is not what it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
}

/// A token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BearerAuthOptions {
    /// The token, which is sent as `Authorization: Bearer …`.
    pub token: ValueType,
}

/// A header of every request.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.value) != has(self.valueFrom)", "set either `value` or `valueFrom`"))]
pub struct RequestHeader {
    /// Its name.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"))]
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub value: Option<String>,
    /// Where its value stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ValueFrom>,
    /// A word before the value, with a space between them, such as `Bearer` or `Api-Token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub prefix: Option<String>,
}

impl RequestHeader {
    /// Its value.
    pub fn source(&self) -> ValueType {
        ValueType { value: self.value.clone(), value_from: self.value_from.clone() }
    }
}

impl fmt::Debug for RequestHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("name", &self.name).field("value", &self.source()).finish_non_exhaustive()
    }
}

/// How a connection is secured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.cert) == has(self.key)", "`cert` and `key` go together"))]
pub struct TlsOptions {
    /// No TLS at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// TLS, but whoever answers is believed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_verify: bool,
    /// The authorities, as PEM, of which one must have signed the other side's certificate. Without them the
    /// well-known ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<ValueType>,
    /// Our own certificate as PEM, with those between it and the authority after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<ValueType>,
    /// The key of our certificate, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ValueType>,
    /// The name that the other side's certificate must be for, if it is not that of the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub server_name_override: Option<String>,
}
