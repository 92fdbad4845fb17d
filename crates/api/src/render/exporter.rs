//! An exporter with its authenticator, and the keys that it needs.

use std::{collections::BTreeMap, path::PathBuf};

use kubewake_config::{
    Secret,
    written::{self, Client, Exporter, Extension, Grpc, Http, Text, Written, escape},
};

use super::SECRETS_DIRECTORY;
use crate::{
    Settings, Signal, Valid,
    v1alpha1::{Compression, Protocol},
    valid::{Authentication, Piece, Tls},
};

/// The keys of the Secret so far.
#[derive(Default)]
pub(super) struct Keys(pub(super) BTreeMap<String, Secret>);

impl Keys {
    /// A text that is expanded where it is read.
    fn text(&mut self, piece: &Piece) -> Text {
        match piece {
            Piece::Open(text) => Text::literal(text),
            Piece::Hidden { key, text } => {
                self.0.insert(key.clone(), Secret::new(escape(text.reveal())));
                Text::File(path(key))
            }
        }
    }

    /// A file that is read as it is.
    fn file(&mut self, piece: &Piece) -> Option<PathBuf> {
        match piece {
            Piece::Open(_) => None,
            Piece::Hidden { key, text } => {
                self.0.insert(key.clone(), text.clone());
                Some(path(key))
            }
        }
    }

    fn tls(&mut self, tls: &Tls) -> written::Tls {
        written::Tls {
            insecure: tls.insecure,
            insecure_skip_verify: tls.insecure_skip_verify,
            ca_file: tls.ca.as_ref().and_then(|piece| self.file(piece)),
            cert_file: tls.pair.as_ref().and_then(|(cert, _)| self.file(cert)),
            key_file: tls.pair.as_ref().and_then(|(_, key)| self.file(key)),
            server_name_override: tls.server_name_override.clone(),
        }
    }
}

fn path(key: &str) -> PathBuf {
    format!("{SECRETS_DIRECTORY}/{key}").into()
}

/// The exporter of a pipeline; says its id.
pub(super) fn add(written: &mut Written, keys: &mut Keys, pipeline: &Valid, settings: &Settings) -> String {
    let name = pipeline.component_name();
    let output = &pipeline.output;
    let authenticator = output.authentication.as_ref().map(|given| {
        let (kind, extension) = authenticator(keys, given);
        let id = format!("{kind}/{name}");
        written.extensions.insert(id.clone(), extension);
        id
    });
    let (sending, defaults) = (&output.sending, &settings.defaults);
    let client = Client {
        tls: output.tls.as_ref().map(|tls| keys.tls(tls)),
        compression: sending.compression.or(defaults.compression).map(compression),
        headers: output.headers.iter().map(|(name, piece)| (name.clone(), keys.text(piece))).collect(),
        authenticator,
        timeout: sending.timeout.or(defaults.timeout),
        retry: Some(sending.retry.over(&defaults.retry)),
        queue: Some(sending.queue.over(&defaults.queue)),
    };
    let endpoint = keys.text(&output.endpoint);
    let (kind, exporter) = match output.protocol {
        Protocol::Grpc => ("otlp_grpc", Exporter::Grpc(Grpc { endpoint, client })),
        Protocol::Http => {
            let field = match pipeline.signal {
                Signal::Traces => "traces_endpoint",
                Signal::Logs => "logs_endpoint",
                Signal::Metrics => "metrics_endpoint",
            };
            ("otlp_http", Exporter::Http(Http { field, endpoint, client }))
        }
    };
    let id = format!("{kind}/{name}");
    written.exporters.insert(id.clone(), exporter);
    id
}

fn compression(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "none",
        Compression::Gzip => "gzip",
        Compression::Snappy => "snappy",
        Compression::Zstd => "zstd",
    }
}

fn authenticator(keys: &mut Keys, given: &Authentication) -> (&'static str, Extension) {
    match given {
        Authentication::Basic { user, password } => {
            ("basicauth", Extension::BasicAuth { username: keys.text(user), password: keys.text(password) })
        }
        Authentication::Bearer { token } => ("bearertokenauth", Extension::BearerTokenAuth { token: keys.text(token) }),
        Authentication::OAuth2(oauth2) => {
            let extension = Extension::OAuth2Client {
                client_id: keys.text(&oauth2.client_id),
                client_secret: keys.text(&oauth2.client_secret),
                token_url: keys.text(&oauth2.token_url),
                scopes: oauth2.scopes.clone(),
                endpoint_params: oauth2.params.clone(),
                tls: oauth2.tls.as_ref().map(|tls| keys.tls(tls)),
            };
            ("oauth2client", extension)
        }
    }
}
