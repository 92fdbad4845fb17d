//! Renders the exporter of a pipeline, with its authenticator.

use std::{collections::BTreeMap, path::PathBuf};

use kubewake_config::{
    CollectorDocument, ComponentId, ConfigText, SecretString, TextReference, escape,
    model::{
        BasicAuth, BasicClientCredentials, BearerTokenAuth, ClientTls, CompressionType, ExporterConfig,
        ExtensionConfig, HttpExportConfig, KeyPair, LokiExporter, OAuth2Client, OtlpGrpcExporter, OtlpHttpExporter,
        PemSource,
    },
};

use super::{SECRETS_DIRECTORY, log_exporter};
use crate::{
    CollectorSettings, Signal, ValidPipeline,
    v1alpha1::{OtlpCompression, OtlpProtocol},
    valid_pipeline::{DocumentText, ValidAuthentication, ValidBackend, ValidTls},
};

/// The keys of the Secret that were added so far.
#[derive(Default)]
pub(super) struct SecretKeys(pub(super) BTreeMap<String, SecretString>);

impl SecretKeys {
    /// Adds a text whose references the collector expands.
    fn add_text(&mut self, key: &str, text: &SecretString) -> TextReference {
        self.0.insert(key.to_owned(), SecretString::new(escape(text.reveal())));
        TextReference::File(path(key))
    }

    /// A text that may be in a document.
    fn config_text(&mut self, piece: &DocumentText) -> ConfigText {
        match piece {
            DocumentText::Inline(text) => text.as_str().into(),
            DocumentText::SecretKey { key, text } => ConfigText::referenced(text.reveal(), self.add_text(key, text)),
        }
    }

    /// A text that must not be in a document, where an inline text has no place.
    fn secret(&mut self, piece: &DocumentText) -> SecretString {
        match piece {
            DocumentText::Inline(text) => SecretString::new(text),
            DocumentText::SecretKey { key, text } => SecretString::referenced(text.reveal(), self.add_text(key, text)),
        }
    }

    /// A file that the collector reads without expansion.
    fn secret_file(&mut self, piece: &DocumentText) -> Option<PemSource> {
        match piece {
            DocumentText::Inline(_) => None,
            DocumentText::SecretKey { key, text } => {
                self.0.insert(key.clone(), text.clone());
                Some(PemSource::File(path(key)))
            }
        }
    }

    fn tls(&mut self, tls: &ValidTls) -> ClientTls {
        let identity = tls
            .pair
            .as_ref()
            .and_then(|(cert, key)| Some(KeyPair { cert: self.secret_file(cert)?, key: self.secret_file(key)? }));
        ClientTls {
            insecure: tls.insecure,
            insecure_skip_verify: tls.insecure_skip_verify,
            ca: tls.ca.as_ref().and_then(|piece| self.secret_file(piece)),
            identity,
            server_name_override: tls.server_name_override.clone(),
            ..ClientTls::default()
        }
    }
}

fn path(key: &str) -> PathBuf {
    format!("{SECRETS_DIRECTORY}/{key}").into()
}

/// Adds the exporter of a pipeline, and returns its id.
pub(super) fn add_exporter(
    document: &mut CollectorDocument,
    keys: &mut SecretKeys,
    pipeline: &ValidPipeline,
    settings: &CollectorSettings,
) -> ComponentId {
    let name = pipeline.component_name();
    let auth = pipeline.output.authentication.as_ref().map(|given| {
        let extension = authenticator(keys, given);
        let id = ComponentId::new(format!("{}/{name}", extension.type_name()));
        document.extensions.insert(id.clone(), extension);
        id
    });
    let (kind, exporter) = match &pipeline.output.backend {
        ValidBackend::Otlp(OtlpProtocol::Grpc) => {
            ("otlp_grpc", ExporterConfig::OtlpGrpc(grpc_exporter(keys, pipeline, settings, auth)))
        }
        ValidBackend::Otlp(OtlpProtocol::Http) => {
            ("otlp_http", ExporterConfig::OtlpHttp(http_exporter(keys, pipeline, settings, auth)))
        }
        ValidBackend::Loki { tenant, labels, allow_record_attributes } => {
            let exporter = LokiExporter::new(keys.config_text(&pipeline.output.endpoint));
            let http = http_client(keys, pipeline, settings, auth, &exporter.http);
            ("loki", log_exporter::loki(exporter, tenant.as_deref(), labels, allow_record_attributes, http))
        }
        ValidBackend::Elasticsearch { api_key, documents, mapping } => {
            let endpoint = keys.config_text(&pipeline.output.endpoint);
            let api_key = api_key.as_ref().map(|key| keys.secret(key));
            let http = |default: &_| http_client(keys, pipeline, settings, auth, default);
            ("elasticsearch", log_exporter::elasticsearch(endpoint, *mapping, api_key, documents, http))
        }
        ValidBackend::Opensearch { documents, mapping } => {
            let endpoint = keys.config_text(&pipeline.output.endpoint);
            let http = |default: &_| http_client(keys, pipeline, settings, auth, default);
            ("opensearch", log_exporter::opensearch(endpoint, *mapping, documents, http))
        }
        ValidBackend::Http(options) => {
            let endpoint = keys.config_text(&pipeline.output.endpoint);
            let http = |default: &_| http_client(keys, pipeline, settings, auth, default);
            ("http", log_exporter::http(endpoint, *options, http))
        }
    };
    let id = ComponentId::new(format!("{kind}/{name}"));
    document.exporters.insert(id.clone(), exporter);
    id
}

fn grpc_exporter(
    keys: &mut SecretKeys,
    pipeline: &ValidPipeline,
    settings: &CollectorSettings,
    auth: Option<ComponentId>,
) -> OtlpGrpcExporter {
    let output = &pipeline.output;
    let defaults = &settings.defaults;
    let default = OtlpGrpcExporter::default();
    let sending = &output.sending;
    OtlpGrpcExporter {
        endpoint: keys.config_text(&output.endpoint),
        tls: output.tls.as_ref().map(|tls| keys.tls(tls)).unwrap_or_default(),
        compression: sending.compression.or(defaults.compression).map_or(default.compression, compression),
        headers: output.headers.iter().map(|(name, piece)| (name.clone(), keys.secret(piece))).collect(),
        auth,
        timeout: sending.timeout.or(defaults.timeout).or(default.timeout),
        retry: sending.retry.with_defaults(&defaults.retry),
        queue: Some(sending.queue.with_defaults(&defaults.queue)),
        ..default
    }
}

fn http_exporter(
    keys: &mut SecretKeys,
    pipeline: &ValidPipeline,
    settings: &CollectorSettings,
    auth: Option<ComponentId>,
) -> OtlpHttpExporter {
    let url = Some(keys.config_text(&pipeline.output.endpoint));
    let url_for = |signal: Signal| url.clone().filter(|_| pipeline.signal == signal);
    OtlpHttpExporter {
        traces_url: url_for(Signal::Traces),
        metrics_url: url_for(Signal::Metrics),
        logs_url: url_for(Signal::Logs),
        http: http_client(keys, pipeline, settings, auth, &HttpExportConfig::default()),
        ..OtlpHttpExporter::default()
    }
}

/// What all exporters over HTTP have in common.
fn http_client(
    keys: &mut SecretKeys,
    pipeline: &ValidPipeline,
    settings: &CollectorSettings,
    auth: Option<ComponentId>,
    default: &HttpExportConfig,
) -> HttpExportConfig {
    let output = &pipeline.output;
    let defaults = &settings.defaults;
    let sending = &output.sending;
    HttpExportConfig {
        tls: output.tls.as_ref().map(|tls| keys.tls(tls)).unwrap_or_default(),
        compression: sending.compression.or(defaults.compression).map_or(default.compression, compression),
        headers: output.headers.iter().map(|(name, piece)| (name.clone(), keys.secret(piece))).collect(),
        auth,
        timeout: sending.timeout.or(defaults.timeout).or(default.timeout),
        retry: sending.retry.with_defaults(&defaults.retry),
        queue: Some(sending.queue.with_defaults(&defaults.queue)),
    }
}

fn compression(compression: OtlpCompression) -> CompressionType {
    match compression {
        OtlpCompression::None => CompressionType::None,
        OtlpCompression::Gzip => CompressionType::Gzip,
        OtlpCompression::Snappy => CompressionType::Snappy,
        OtlpCompression::Zstd => CompressionType::Zstd,
    }
}

fn authenticator(keys: &mut SecretKeys, given: &ValidAuthentication) -> ExtensionConfig {
    match given {
        ValidAuthentication::Basic { user, password } => {
            ExtensionConfig::BasicAuth(BasicAuth::Client(BasicClientCredentials {
                username: keys.config_text(user),
                password: keys.secret(password),
                ..BasicClientCredentials::default()
            }))
        }
        ValidAuthentication::Bearer { token } => {
            ExtensionConfig::BearerTokenAuth(BearerTokenAuth::with_token(keys.secret(token)))
        }
        ValidAuthentication::OAuth2(oauth2) => ExtensionConfig::OAuth2Client(OAuth2Client {
            client_id: keys.config_text(&oauth2.client_id),
            client_secret: keys.secret(&oauth2.client_secret),
            token_url: keys.config_text(&oauth2.token_url),
            scopes: oauth2.scopes.clone(),
            endpoint_params: oauth2.params.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            tls: oauth2.tls.as_ref().map(|tls| keys.tls(tls)).unwrap_or_default(),
            ..OAuth2Client::default()
        }),
    }
}
