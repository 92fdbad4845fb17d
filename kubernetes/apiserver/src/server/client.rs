//! kube-rs clients of a running server, for the tests of operators.
//!
//! A client authenticates by certificate or token, and trusts only the server's own CA. Its default namespace
//! is `default`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use kube::{Client, Config, config::AuthInfo};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::ApiServer;
use crate::auth::certs::{self, CertificatePair};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("failed to issue a client certificate")]
    Certificate(#[from] certs::ServerCertificateError),
    #[error("failed to read the server's CA")]
    Authority(#[from] rustls::pki_types::pem::Error),
    #[error("invalid address of the API server")]
    Address(#[from] http::uri::InvalidUri),
    #[error("failed to create a kube-rs client")]
    Client(#[source] Box<kube::Error>),
}

impl ApiServer {
    /// The configuration of the administrator's kube-rs client, for callers that change it: timeouts, retries,
    /// impersonation.
    ///
    /// # Errors
    /// None in practice: the certificates were created when the server started.
    pub fn client_config(&self) -> Result<Config, ClientError> {
        self.config_for(certificate(&self.certs.admin))
    }

    /// A client of the administrator, who may do everything.
    ///
    /// It must be called within the runtime that the client is used in.
    ///
    /// # Errors
    /// None in practice: the certificates were created when the server started.
    pub fn client(&self) -> Result<Client, ClientError> {
        self.client_from(certificate(&self.certs.admin))
    }

    /// A client of this user in these groups, with a certificate that the server's CA signs. RBAC decides what
    /// it may do.
    ///
    /// # Errors
    /// If a name is not valid in a certificate.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Result<Client, ClientError> {
        let pair = self.certs.authority.client(user, groups, Timestamp::now())?;
        self.client_from(certificate(&pair))
    }

    /// A client with a bearer token, such as one of a ServiceAccount.
    ///
    /// # Errors
    /// If the token is not valid in a header.
    pub fn client_with_token(&self, token: &str) -> Result<Client, ClientError> {
        self.client_from(AuthInfo { token: Some(token.into()), ..AuthInfo::default() })
    }

    fn client_from(&self, credentials: AuthInfo) -> Result<Client, ClientError> {
        Client::try_from(self.config_for(credentials)?).map_err(|error| ClientError::Client(Box::new(error)))
    }

    fn config_for(&self, credentials: AuthInfo) -> Result<Config, ClientError> {
        let authority = CertificateDer::from_pem_slice(self.certs.authority.certificate().as_bytes())?;
        let mut config = Config::new(self.url().parse()?);
        config.root_cert = Some(vec![authority.to_vec()]);
        config.auth_info = credentials;
        Ok(config)
    }
}

fn certificate(pair: &CertificatePair) -> AuthInfo {
    AuthInfo {
        client_certificate_data: Some(STANDARD.encode(&pair.chain)),
        client_key_data: Some(STANDARD.encode(&pair.key).into()),
        ..AuthInfo::default()
    }
}
