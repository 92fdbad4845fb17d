//! The files that components read besides the document. A change in one of them is a change of the component.

use std::path::PathBuf;

use kubewake_config::{
    ComponentId,
    model::{BasicAuth, ClientTls, ExporterConfig, ExtensionConfig, KeyPair, PemSource, ReceiverConfig, ServerTls},
};

pub fn exporter_files(exporter: &ExporterConfig) -> Vec<PathBuf> {
    match exporter {
        ExporterConfig::OtlpGrpc(settings) => client_tls(&settings.tls),
        ExporterConfig::OtlpHttp(settings) => client_tls(&settings.tls),
        ExporterConfig::LoadBalancing(settings) => client_tls(&settings.otlp.tls),
        ExporterConfig::Debug(_) | ExporterConfig::File(_) | ExporterConfig::Nop(_) => Vec::new(),
    }
}

pub fn receiver_files(receiver: &ReceiverConfig) -> Vec<PathBuf> {
    match receiver {
        ReceiverConfig::Otlp(settings) => {
            let grpc = settings.grpc.as_ref().and_then(|s| s.tls.as_ref());
            let http = settings.http.as_ref().and_then(|s| s.tls.as_ref());
            grpc.into_iter().chain(http).flat_map(server_tls).collect()
        }
        ReceiverConfig::OpenCensus(settings) => settings.server.tls.as_ref().map(server_tls).unwrap_or_default(),
    }
}

pub fn extension_files(extension: &ExtensionConfig) -> Vec<PathBuf> {
    match extension {
        ExtensionConfig::HealthCheck(settings) => settings.tls.as_ref().map(server_tls).unwrap_or_default(),
        ExtensionConfig::BasicAuth(BasicAuth::Server(htpasswd)) => htpasswd.file.iter().cloned().collect(),
        ExtensionConfig::BasicAuth(BasicAuth::Client(client)) => {
            client.username_file.iter().chain(&client.password_file).cloned().collect()
        }
        ExtensionConfig::BearerTokenAuth(settings) => settings.file.iter().cloned().collect(),
        ExtensionConfig::OAuth2Client(settings) => {
            let own = settings.client_id_file.iter().chain(&settings.client_secret_file).cloned();
            own.chain(client_tls(&settings.tls)).collect()
        }
    }
}

fn client_tls(tls: &ClientTls) -> Vec<PathBuf> {
    tls.identity.iter().flat_map(key_pair).chain(tls.ca.iter().filter_map(pem)).collect()
}

fn server_tls(tls: &ServerTls) -> Vec<PathBuf> {
    key_pair(&tls.identity).into_iter().chain(tls.client_ca.iter().filter_map(pem)).collect()
}

fn key_pair(pair: &KeyPair) -> Vec<PathBuf> {
    [&pair.cert, &pair.key].into_iter().filter_map(pem).collect()
}

fn pem(source: &PemSource) -> Option<PathBuf> {
    match source {
        PemSource::File(path) => Some(path.clone()),
        PemSource::Inline(_) => None,
    }
}

/// The extension that provides the credentials of an exporter.
pub fn exporter_auth_id(settings: &ExporterConfig) -> Option<&ComponentId> {
    match settings {
        ExporterConfig::OtlpGrpc(settings) => settings.auth.as_ref(),
        ExporterConfig::OtlpHttp(settings) => settings.auth.as_ref(),
        ExporterConfig::LoadBalancing(settings) => settings.otlp.auth.as_ref(),
        ExporterConfig::Debug(_) | ExporterConfig::File(_) | ExporterConfig::Nop(_) => None,
    }
}

/// The extensions that provide the authenticators of a receiver.
pub fn receiver_auth_ids(settings: &ReceiverConfig) -> Vec<&ComponentId> {
    match settings {
        ReceiverConfig::Otlp(settings) => {
            let grpc = settings.grpc.as_ref().and_then(|s| s.auth.as_ref());
            let http = settings.http.as_ref().and_then(|s| s.auth.as_ref());
            grpc.into_iter().chain(http).collect()
        }
        ReceiverConfig::OpenCensus(settings) => settings.server.auth.iter().collect(),
    }
}
