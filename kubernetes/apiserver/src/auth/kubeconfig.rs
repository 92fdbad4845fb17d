//! A kubeconfig for one server and one user.

use std::{fmt, io, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::certs::{CertificatePair, secret_files};

/// The data that a client needs to connect to the server.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// The names of cluster, context and user in the file: `kubewake`.
    pub name: String,
    /// `https://127.0.0.1:6443`
    pub server: String,
    /// PEM. Without it, clients use the system's trust.
    pub certificate_authority: Option<String>,
    pub credentials: ClientCredentials,
}

/// The credentials of a client. `Debug` redacts secrets.
#[derive(Clone)]
pub enum ClientCredentials {
    Certificate(CertificatePair),
    Token(String),
}

impl Kubeconfig {
    pub fn to_yaml(&self) -> String {
        let authority = self
            .certificate_authority
            .as_deref()
            .map_or_else(String::new, |pem| format!("\n    certificate-authority-data: {}", STANDARD.encode(pem)));
        // Every JSON string is a YAML string.
        let [name, server] = [&self.name, &self.server].map(|text| serde_json::Value::from(text.as_str()).to_string());
        format!(
            "apiVersion: v1\nkind: Config\n\
             clusters:\n- name: {name}\n  cluster:\n    server: {server}{authority}\n\
             users:\n- name: {name}\n  user:\n{credentials}\
             contexts:\n- name: {name}\n  context:\n    cluster: {name}\n    user: {name}\n\
             current-context: {name}\n",
            credentials = self.credentials.to_yaml(),
        )
    }

    /// Writes it atomically to a file that only its owner can read.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        secret_files::write(path, &self.to_yaml(), true)
    }
}

impl ClientCredentials {
    fn to_yaml(&self) -> String {
        match self {
            Self::Certificate(CertificatePair { chain, key }) => {
                let [chain, key] = [chain, key].map(|pem| STANDARD.encode(pem));
                format!("    client-certificate-data: {chain}\n    client-key-data: {key}\n")
            }
            Self::Token(token) => format!("    token: {}\n", serde_json::Value::from(token.as_str())),
        }
    }
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(pair) => f.debug_tuple("Certificate").field(pair).finish(),
            Self::Token(_) => f.write_str("Token(***)"),
        }
    }
}
