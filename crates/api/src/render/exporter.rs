//! Renders an exporter with its authenticator, and the keys that it needs.

use std::{collections::BTreeMap, path::PathBuf};

use kubewake_config::{
    SecretString,
    document_builder::{
        self, ClientSection, DocumentBuilder, ExporterSection, ExtensionSection, OtlpGrpcSection, OtlpHttpSection,
        TextSource, escape,
    },
};

use super::SECRETS_DIRECTORY;
use crate::{
    CollectorSettings, Signal, ValidPipeline,
    v1alpha1::{OtlpCompression, OtlpProtocol},
    valid_pipeline::{DocumentText, ValidAuthentication, ValidBackend, ValidTls},
};

/// The keys of the Secret that were added so far.
#[derive(Default)]
pub(super) struct SecretKeys(pub(super) BTreeMap<String, SecretString>);

impl SecretKeys {
    /// A text whose references the collector expands.
    fn text_source(&mut self, piece: &DocumentText) -> TextSource {
        match piece {
            DocumentText::Inline(text) => TextSource::literal(text),
            DocumentText::SecretKey { key, text } => {
                self.0.insert(key.clone(), SecretString::new(escape(text.reveal())));
                TextSource::File(path(key))
            }
        }
    }

    /// A file that the collector reads without expansion.
    fn secret_file(&mut self, piece: &DocumentText) -> Option<PathBuf> {
        match piece {
            DocumentText::Inline(_) => None,
            DocumentText::SecretKey { key, text } => {
                self.0.insert(key.clone(), text.clone());
                Some(path(key))
            }
        }
    }

    fn tls(&mut self, tls: &ValidTls) -> document_builder::ClientTlsSection {
        document_builder::ClientTlsSection {
            insecure: tls.insecure,
            insecure_skip_verify: tls.insecure_skip_verify,
            ca_file: tls.ca.as_ref().and_then(|piece| self.secret_file(piece)),
            cert_file: tls.pair.as_ref().and_then(|(cert, _)| self.secret_file(cert)),
            key_file: tls.pair.as_ref().and_then(|(_, key)| self.secret_file(key)),
            server_name_override: tls.server_name_override.clone(),
        }
    }
}

fn path(key: &str) -> PathBuf {
    format!("{SECRETS_DIRECTORY}/{key}").into()
}

/// Adds the exporter of a pipeline, and returns its id.
pub(super) fn add_exporter(
    written: &mut DocumentBuilder,
    keys: &mut SecretKeys,
    pipeline: &ValidPipeline,
    settings: &CollectorSettings,
) -> String {
    let name = pipeline.component_name();
    let output = &pipeline.output;
    let ValidBackend::Otlp(protocol) = output.backend else { todo!() };
    let authenticator = output.authentication.as_ref().map(|given| {
        let (kind, extension) = authenticator(keys, given);
        let id = format!("{kind}/{name}");
        written.extensions.insert(id.clone(), extension);
        id
    });
    let sending = &output.sending;
    let defaults = &settings.defaults;
    let client = ClientSection {
        tls: output.tls.as_ref().map(|tls| keys.tls(tls)),
        compression: sending.compression.or(defaults.compression).map(compression),
        headers: output.headers.iter().map(|(name, piece)| (name.clone(), keys.text_source(piece))).collect(),
        authenticator,
        timeout: sending.timeout.or(defaults.timeout),
        retry: Some(sending.retry.with_defaults(&defaults.retry)),
        queue: Some(sending.queue.with_defaults(&defaults.queue)),
    };
    let endpoint = keys.text_source(&output.endpoint);
    let (kind, exporter) = match protocol {
        OtlpProtocol::Grpc => ("otlp_grpc", ExporterSection::Grpc(OtlpGrpcSection { endpoint, client })),
        OtlpProtocol::Http => {
            let field = match pipeline.signal {
                Signal::Traces => "traces_endpoint",
                Signal::Logs => "logs_endpoint",
                Signal::Metrics => "metrics_endpoint",
            };
            ("otlp_http", ExporterSection::Http(OtlpHttpSection { field, endpoint, client }))
        }
    };
    let id = format!("{kind}/{name}");
    written.exporters.insert(id.clone(), exporter);
    id
}

fn compression(compression: OtlpCompression) -> &'static str {
    match compression {
        OtlpCompression::None => "none",
        OtlpCompression::Gzip => "gzip",
        OtlpCompression::Snappy => "snappy",
        OtlpCompression::Zstd => "zstd",
    }
}

fn authenticator(keys: &mut SecretKeys, given: &ValidAuthentication) -> (&'static str, ExtensionSection) {
    match given {
        ValidAuthentication::Basic { user, password } => (
            "basicauth",
            ExtensionSection::BasicAuth { username: keys.text_source(user), password: keys.text_source(password) },
        ),
        ValidAuthentication::Bearer { token } => {
            ("bearertokenauth", ExtensionSection::BearerTokenAuth { token: keys.text_source(token) })
        }
        ValidAuthentication::OAuth2(oauth2) => {
            let extension = ExtensionSection::OAuth2Client {
                client_id: keys.text_source(&oauth2.client_id),
                client_secret: keys.text_source(&oauth2.client_secret),
                token_url: keys.text_source(&oauth2.token_url),
                scopes: oauth2.scopes.clone(),
                endpoint_params: oauth2.params.clone(),
                tls: oauth2.tls.as_ref().map(|tls| keys.tls(tls)),
            };
            ("oauth2client", extension)
        }
    }
}
