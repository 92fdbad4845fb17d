//! `bearertokenauth`: whoever holds a token.
//!
//! Files are read when the extension is built; whoever sees one change builds it again.

#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName};
use kubewake_config::{Secret, model::BearerTokenAuth};

use super::{AuthError, ClientAuth, Identified, ServerAuth, Verdict};
use crate::{
    components::{Auth, BuildError},
    net::request::credential::{self, Fixed, same},
};

/// Builds both sides: a client sends the first token, a server takes any of them.
pub(crate) fn build(settings: &BearerTokenAuth) -> Result<Auth, BuildError> {
    Ok(Auth { client: Some(client(settings)?), server: Some(server(settings)?) })
}

fn client(settings: &BearerTokenAuth) -> Result<Arc<dyn ClientAuth>, BuildError> {
    let values = values(settings)?;
    let first = values.first().ok_or_else(no_token)?;
    Ok(Arc::new(Fixed::new(header(settings)?, first.reveal())?))
}

fn server(settings: &BearerTokenAuth) -> Result<Arc<dyn ServerAuth>, BuildError> {
    Ok(Arc::new(Server { header: header(settings)?, values: values(settings)? }))
}

struct Server {
    header: HeaderName,
    /// The whole values that the header may have.
    values: Vec<Secret>,
}

impl ServerAuth for Server {
    fn authenticate(&self, headers: &HeaderMap, _: IpAddr) -> Verdict {
        Verdict::Now(self.identify(headers))
    }
}

impl Server {
    fn identify(&self, headers: &HeaderMap) -> Identified {
        let value = headers.get(&self.header).ok_or_else(|| AuthError(format!("no header \"{}\"", self.header)))?;
        // All are compared, so that the time does not tell which one came close.
        let known = self
            .values
            .iter()
            .fold(false, |known, expected| same(expected.reveal().as_bytes(), value.as_bytes()) | known);
        match known {
            // A token says that its holder may come in, not who it is.
            true => Ok(None),
            false => Err(AuthError(format!("header \"{}\" holds no token that is known", self.header)).into()),
        }
    }
}

fn header(settings: &BearerTokenAuth) -> Result<HeaderName, BuildError> {
    let name = &settings.header;
    HeaderName::try_from(name).map_err(|_| BuildError(format!("\"{name}\" is not a header name")))
}

fn values(settings: &BearerTokenAuth) -> Result<Vec<Secret>, BuildError> {
    let tokens: Vec<Secret> = match &settings.file {
        // What follows a token on its line is a comment, as in the Collector.
        Some(path) => {
            credential::read(path)?.lines().filter_map(|line| line.split_whitespace().next()).map(Secret::new).collect()
        }
        None => settings.tokens.iter().filter(|token| !token.is_empty()).cloned().collect(),
    };
    if tokens.is_empty() {
        return Err(no_token());
    }
    Ok(tokens.iter().map(|token| with_scheme(&settings.scheme, token)).collect())
}

fn with_scheme(scheme: &str, token: &Secret) -> Secret {
    match scheme {
        "" => token.clone(),
        scheme => Secret::new(format!("{scheme} {}", token.reveal())),
    }
}

fn no_token() -> BuildError {
    BuildError("bearertokenauth has no token".into())
}
