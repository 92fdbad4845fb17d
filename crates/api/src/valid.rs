//! A pipeline that can work as it is written.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kubewake_config::{Secret, written};

use crate::{
    Problem, Signal,
    pipeline::{Filter, Input, Pipeline},
    v1alpha1::Protocol,
    validate::SOON,
};

/// A pipeline that passed all checks. It can be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid {
    pub(crate) signal: Signal,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) paused: bool,
    pub(crate) input: Input,
    pub(crate) filter: Vec<Filter>,
    pub(crate) sampling: Sampling,
    pub(crate) output: Output,
    pub(crate) backend: String,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) expires: Option<Timestamp>,
}

impl Valid {
    /// What flows through it.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which one it is of all that have had its name.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether it is part of a document: one that is paused, or takes nothing, is not.
    pub fn is_rendered(&self) -> bool {
        !self.paused && self.input.enabled
    }

    /// Whether it needs the collectors in which whole traces wait.
    pub fn is_sticky(&self) -> bool {
        self.sampling.tail.is_some()
    }

    /// Where it sends to, as a status may say it: never anything that stands in a Secret.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// What is allowed but unwise about it.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// When the first of its certificates expires that is valid now.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    /// When it has to be checked again although nothing changed: two weeks before a certificate expires, and when it has.
    pub fn recheck(&self, now: Timestamp) -> Option<Timestamp> {
        let expires = self.expires?;
        let warning = expires.checked_sub(SOON).ok().filter(|warning| *warning > now);
        // At that moment itself it is still valid.
        warning.or_else(|| expires.checked_add(SignedDuration::from_secs(1)).ok())
    }

    /// The id of its section in documents: `traces/backend` in `service::pipelines`.
    pub fn pipeline_id(&self) -> String {
        format!("{}/{}", self.signal, self.name)
    }

    /// What the ids of its components end with: `traces-backend`.
    pub fn component_name(&self) -> String {
        format!("{}-{}", self.signal, self.name)
    }
}

/// A text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// One that may stand in it.
    Open(String),
    /// One that must not: a key of the Secret that collectors read.
    Hidden { key: String, text: Secret },
}

/// The name of a key in the Secret that collectors read.
///
/// It names the revision of what is in it, so that what a key holds never changes: the resource with its generation, and the revision of the object that the
/// text stands in.
pub(crate) fn key(pipeline: &Pipeline, field: &str, revision: Option<&str>) -> String {
    let word =
        |text: &str, most: usize| -> String { text.chars().filter(char::is_ascii_alphanumeric).take(most).collect() };
    let Pipeline { signal, name, uid, generation, .. } = pipeline;
    let mut key = format!("{signal}.{name}.{field}.{}-g{generation}", word(uid, 8));
    if let Some(revision) = revision {
        key.push_str("-r");
        key.push_str(&word(revision, 64));
    }
    key
}

/// Which traces are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sampling {
    pub(crate) percentage: Option<f64>,
    pub(crate) tail: Option<written::TailSampling>,
}

/// Where to send to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: Piece,
    pub(crate) tls: Option<Tls>,
    pub(crate) authentication: Option<Authentication>,
    pub(crate) headers: Vec<(String, Piece)>,
    pub(crate) sending: crate::settings::Sending,
}

/// How a connection is secured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tls {
    pub(crate) insecure: bool,
    pub(crate) insecure_skip_verify: bool,
    pub(crate) ca: Option<Piece>,
    pub(crate) pair: Option<(Piece, Piece)>,
    pub(crate) server_name_override: Option<String>,
}

/// Who we are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Authentication {
    Basic { user: Piece, password: Piece },
    Bearer { token: Piece },
    OAuth2(Box<OAuth2>),
}

/// The client credentials flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OAuth2 {
    pub(crate) token_url: Piece,
    pub(crate) client_id: Piece,
    pub(crate) client_secret: Piece,
    pub(crate) scopes: Vec<String>,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) tls: Option<Tls>,
}
