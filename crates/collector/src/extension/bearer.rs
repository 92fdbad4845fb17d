//! `bearertokenauth`: authentication by a bearer token.
//!
//! Files are read when the extension is built; a change of a file builds the extension again.

#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName};
use kubewake_config::{SecretString, model::BearerTokenAuth};

use super::{AuthDecision, AuthError, AuthResult, ClientAuth, Extension, ServerAuth};
use crate::{
    components::{AuthProviders, BuildError, ExtensionContext},
    net::request::credential::{self, StaticCredentials, constant_time_eq},
};

pub(crate) fn prepare(settings: &BearerTokenAuth, _: &ExtensionContext<'_>) -> Result<Box<dyn Extension>, BuildError> {
    Ok(Box::new(settings.clone()))
}

impl Extension for BearerTokenAuth {
    fn build_auth(&self) -> Result<AuthProviders, BuildError> {
        build(self)
    }
}

/// Builds both sides: a client sends the first token, a server accepts any of them.
pub(crate) fn build(settings: &BearerTokenAuth) -> Result<AuthProviders, BuildError> {
    Ok(AuthProviders { client: Some(client(settings)?), server: Some(server(settings)?) })
}

fn client(settings: &BearerTokenAuth) -> Result<Arc<dyn ClientAuth>, BuildError> {
    let values = values(settings)?;
    let first = values.first().ok_or_else(no_token)?;
    Ok(Arc::new(StaticCredentials::new(header(settings)?, first.reveal())?))
}

fn server(settings: &BearerTokenAuth) -> Result<Arc<dyn ServerAuth>, BuildError> {
    Ok(Arc::new(BearerServerAuth { header: header(settings)?, values: values(settings)? }))
}

struct BearerServerAuth {
    header: HeaderName,
    /// The accepted values of the header.
    values: Vec<SecretString>,
}

impl ServerAuth for BearerServerAuth {
    fn authenticate(&self, headers: &HeaderMap, _: IpAddr) -> AuthDecision {
        AuthDecision::Now(self.identify(headers))
    }
}

impl BearerServerAuth {
    fn identify(&self, headers: &HeaderMap) -> AuthResult {
        let value =
            headers.get(&self.header).ok_or_else(|| AuthError(format!("header \"{}\" is missing", self.header)))?;
        // All tokens are compared, so that the time does not reveal a close guess.
        let known = self
            .values
            .iter()
            .fold(false, |known, expected| constant_time_eq(expected.reveal().as_bytes(), value.as_bytes()) | known);
        match known {
            // A token proves that its holder is allowed, not who the holder is.
            true => Ok(None),
            false => Err(AuthError(format!("header \"{}\" contains no known token", self.header)).into()),
        }
    }
}

fn header(settings: &BearerTokenAuth) -> Result<HeaderName, BuildError> {
    let name = &settings.header;
    HeaderName::try_from(name).map_err(|_| BuildError(format!("\"{name}\" is not a header name")))
}

fn values(settings: &BearerTokenAuth) -> Result<Vec<SecretString>, BuildError> {
    let tokens: Vec<SecretString> = match &settings.file {
        // Text behind a token on its line is a comment, as in the Collector.
        Some(path) => credential::read_credential_file(path)?
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .map(SecretString::new)
            .collect(),
        None => settings.tokens.iter().filter(|token| !token.is_empty()).cloned().collect(),
    };
    if tokens.is_empty() {
        return Err(no_token());
    }
    Ok(tokens.iter().map(|token| with_scheme(&settings.scheme, token)).collect())
}

fn with_scheme(scheme: &str, token: &SecretString) -> SecretString {
    match scheme {
        "" => token.clone(),
        scheme => SecretString::new(format!("{scheme} {}", token.reveal())),
    }
}

fn no_token() -> BuildError {
    BuildError("bearertokenauth has no token".into())
}
