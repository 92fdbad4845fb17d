//! The files that components read besides the document: a change in one is a change of the component.

use std::path::PathBuf;

use kubewake_config::model::{BasicAuth, ClientTls, Exporter, Extension, KeyPair, PemSource, Receiver, ServerTls};

/// Files of an exporter.
pub fn exporter_files(exporter: &Exporter) -> Vec<PathBuf> {
    match exporter {
        Exporter::OtlpGrpc(settings) => client_tls(&settings.tls),
        Exporter::OtlpHttp(settings) => client_tls(&settings.tls),
        Exporter::LoadBalancing(settings) => client_tls(&settings.otlp.tls),
        Exporter::Debug(_) | Exporter::File(_) | Exporter::Nop => Vec::new(),
    }
}

/// Files of a receiver.
pub fn receiver_files(receiver: &Receiver) -> Vec<PathBuf> {
    match receiver {
        Receiver::Otlp(settings) => {
            let grpc = settings.grpc.as_ref().and_then(|s| s.tls.as_ref());
            let http = settings.http.as_ref().and_then(|s| s.tls.as_ref());
            grpc.into_iter().chain(http).flat_map(server_tls).collect()
        }
        Receiver::OpenCensus(settings) => settings.server.tls.as_ref().map(server_tls).unwrap_or_default(),
    }
}

/// Files of an extension.
pub fn extension_files(extension: &Extension) -> Vec<PathBuf> {
    match extension {
        Extension::HealthCheck(settings) => settings.tls.as_ref().map(server_tls).unwrap_or_default(),
        Extension::BasicAuth(BasicAuth::Server(htpasswd)) => htpasswd.file.iter().cloned().collect(),
        Extension::BasicAuth(BasicAuth::Client(client)) => {
            client.username_file.iter().chain(&client.password_file).cloned().collect()
        }
        Extension::BearerTokenAuth(settings) => settings.file.iter().cloned().collect(),
        Extension::OAuth2Client(settings) => {
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
