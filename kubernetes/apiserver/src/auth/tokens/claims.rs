//! The header and claims of a token.

use serde::{Deserialize, Serialize};

/// The claims, in the alphabetical order in which kube-apiserver writes them.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct TokenClaims {
    #[serde(default)]
    pub aud: Audiences,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<i64>,
    pub iss: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub jti: String,
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: KubernetesClaims,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
    #[serde(default)]
    pub sub: String,
}

/// The ServiceAccount of a token, and the objects that it is bound to.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct KubernetesClaims {
    pub namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<ClaimObjectRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<ClaimObjectRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<ClaimObjectRef>,
    pub serviceaccount: ClaimObjectRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct ClaimObjectRef {
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// The audience of a JWT, which may be one text or a list.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(from = "OneOrMany")]
pub(super) struct Audiences(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Audiences {
    fn from(from: OneOrMany) -> Self {
        match from {
            OneOrMany::One(one) => Self(vec![one]),
            OneOrMany::Many(many) => Self(many),
        }
    }
}

/// The header of a token.
#[derive(Debug, Deserialize)]
pub(super) struct TokenHeader {
    pub alg: String,
    #[serde(default)]
    pub kid: String,
    /// Critical extensions; none are supported.
    pub crit: Option<serde::de::IgnoredAny>,
}
