//! What a token says.

use serde::{Deserialize, Serialize};

/// The claims, in the alphabetical order in which kube-apiserver writes them.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Claims {
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
    pub kubernetes: Kubernetes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
    #[serde(default)]
    pub sub: String,
}

/// Whose token it is and what it is bound to.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Kubernetes {
    pub namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Ref>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Ref>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Ref>,
    pub serviceaccount: Ref,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// An object.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Ref {
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// A JWT may have one audience as a text or several as a list.
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

/// The first part of a token.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub alg: String,
    #[serde(default)]
    pub kid: String,
    /// Extensions that must be understood; we understand none.
    pub crit: Option<serde::de::IgnoredAny>,
}
