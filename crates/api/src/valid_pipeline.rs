//! A pipeline that has passed validation.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kubewake_config::{PipelineId, SecretString, model::TailSamplingProcessor};

use crate::{
    Signal, SpecProblem,
    destination::HttpOptions,
    pipeline::{InputSelection, RecordFilter, RuntimeLogs, TelemetryPipeline},
    v1alpha1::{DocumentOptions, ElasticsearchMapping, OpensearchMapping, OtlpProtocol},
    validate::EXPIRY_WARNING_PERIOD,
};

/// A pipeline that passed all checks, and can be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidPipeline {
    pub(crate) signal: Signal,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) paused: bool,
    pub(crate) input: InputSelection,
    pub(crate) runtime: Option<RuntimeLogs>,
    pub(crate) filter: Vec<RecordFilter>,
    pub(crate) sampling: ValidSampling,
    pub(crate) output: ValidOutput,
    pub(crate) backend: String,
    pub(crate) warnings: Vec<SpecProblem>,
    pub(crate) expires: Option<Timestamp>,
}

impl ValidPipeline {
    /// The signal that it carries.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The name of its resource.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The uid of its resource.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether it is part of a document: one that is paused, or has no input, is not.
    pub fn is_rendered(&self) -> bool {
        !self.paused && (self.receives_otlp() || self.reads_logs())
    }

    /// Whether the gateway receives for it what is sent to the collectors.
    pub fn receives_otlp(&self) -> bool {
        self.input.enabled
    }

    /// Whether the collectors on the nodes read logs of containers for it.
    pub fn reads_logs(&self) -> bool {
        self.runtime.is_some()
    }

    /// Whether `spec.paused` is true.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether it needs the sticky tier.
    pub fn is_sticky(&self) -> bool {
        self.sampling.tail.is_some()
    }

    /// Its destination for a status: never a value of a Secret.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Problems that do not make it invalid.
    pub fn warnings(&self) -> &[SpecProblem] {
        &self.warnings
    }

    /// When the first of its currently valid certificates expires.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    /// When it must be validated again although nothing changed: two weeks before a certificate expires, and
    /// when it has expired.
    pub fn next_recheck(&self, now: Timestamp) -> Option<Timestamp> {
        let expires = self.expires?;
        let warning = expires.checked_sub(EXPIRY_WARNING_PERIOD).ok().filter(|warning| *warning > now);
        // At the time of expiry itself a certificate is still valid.
        warning.or_else(|| expires.checked_add(SignedDuration::from_secs(1)).ok())
    }

    /// The id of its section in documents: `traces/backend` in `service::pipelines`.
    pub fn pipeline_id(&self) -> PipelineId {
        PipelineId::named(self.signal, &self.name)
    }

    /// The name part of its components' ids: `traces-backend`.
    pub fn component_name(&self) -> String {
        format!("{}-{}", self.signal, self.name)
    }
}

/// A text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentText {
    /// A text that may be in a document.
    Inline(String),
    /// A text that must not: a key of the Secret that collectors read.
    SecretKey { key: String, text: SecretString },
}

/// The name of a key in the Secret that collectors read.
///
/// It contains the uid and generation of the resource, and the revision of the object that the text comes from,
/// so that the value of a key never changes.
pub(crate) fn secret_key(pipeline: &TelemetryPipeline, field: &str, revision: Option<&str>) -> String {
    let word =
        |text: &str, most: usize| -> String { text.chars().filter(char::is_ascii_alphanumeric).take(most).collect() };
    let TelemetryPipeline { signal, name, uid, generation, .. } = pipeline;
    let mut key = format!("{signal}.{name}.{field}.{}-g{generation}", word(uid, 8));
    if let Some(revision) = revision {
        key.push_str("-r");
        key.push_str(&word(revision, 64));
    }
    key
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ValidSampling {
    pub(crate) percentage: Option<f64>,
    pub(crate) tail: Option<TailSamplingProcessor>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValidOutput {
    pub(crate) backend: ValidBackend,
    pub(crate) endpoint: DocumentText,
    pub(crate) tls: Option<ValidTls>,
    pub(crate) authentication: Option<ValidAuthentication>,
    pub(crate) headers: Vec<(String, DocumentText)>,
    pub(crate) sending: crate::settings::SendingSettings,
}

/// A kind of backend, with the settings that only it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ValidBackend {
    Otlp(OtlpProtocol),
    Loki {
        tenant: Option<String>,
        /// If empty, the exporter's defaults.
        labels: Vec<(String, String)>,
        allow_record_attributes: Vec<String>,
    },
    Elasticsearch {
        api_key: Option<DocumentText>,
        documents: DocumentOptions,
        mapping: Option<ElasticsearchMapping>,
    },
    Opensearch {
        documents: DocumentOptions,
        mapping: Option<OpensearchMapping>,
    },
    Http(HttpOptions),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ValidTls {
    pub(crate) insecure: bool,
    pub(crate) insecure_skip_verify: bool,
    pub(crate) ca: Option<DocumentText>,
    pub(crate) pair: Option<(DocumentText, DocumentText)>,
    pub(crate) server_name_override: Option<String>,
}

/// Authentication to the backend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ValidAuthentication {
    Basic { user: DocumentText, password: DocumentText },
    Bearer { token: DocumentText },
    OAuth2(Box<ValidOAuth2>),
}

/// The OAuth2 client credentials flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValidOAuth2 {
    pub(crate) token_url: DocumentText,
    pub(crate) client_id: DocumentText,
    pub(crate) client_secret: DocumentText,
    pub(crate) scopes: Vec<String>,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) tls: Option<ValidTls>,
}
