//! `basicauth`: HTTP basic authentication, for clients and for servers.
//!
//! Files are read when the extension is built; a change of a file builds the extension again.

mod hash_slots;
mod htpasswd;

#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use kubewake_config::model::{BasicAuth, BasicClientCredentials, Htpasswd};

use super::{AuthDecision, AuthError, AuthRefusal, AuthResult, ClientAuth, Extension, ServerAuth};
use crate::{
    components::{AuthProviders, BuildError, ExtensionContext},
    net::request::credential::{self, StaticCredentials},
};
use htpasswd::{HtpasswdUsers, PasswordCheck};

pub(crate) fn prepare(settings: &BasicAuth, _: &ExtensionContext<'_>) -> Result<Box<dyn Extension>, BuildError> {
    Ok(Box::new(settings.clone()))
}

impl Extension for BasicAuth {
    fn build_auth(&self) -> Result<AuthProviders, BuildError> {
        build(self)
    }
}

/// Builds the client or the server, whichever the settings configure.
pub(crate) fn build(settings: &BasicAuth) -> Result<AuthProviders, BuildError> {
    match settings {
        BasicAuth::Client(settings) => Ok(AuthProviders { client: Some(client(settings)?), server: None }),
        BasicAuth::Server(settings) => Ok(AuthProviders { client: None, server: Some(server(settings)?) }),
    }
}

/// A client that sends the same header with every request.
fn client(settings: &BasicClientCredentials) -> Result<Arc<dyn ClientAuth>, BuildError> {
    let username = credential::file_or_inline(&settings.username, settings.username_file.as_deref())?;
    let password = credential::file_or_inline(settings.password.reveal(), settings.password_file.as_deref())?;
    let login = STANDARD.encode(format!("{username}:{password}"));
    Ok(Arc::new(StaticCredentials::new(AUTHORIZATION, &format!("Basic {login}"))?))
}

/// A server that accepts the listed users.
fn server(settings: &Htpasswd) -> Result<Arc<dyn ServerAuth>, BuildError> {
    let file = settings.file.as_deref().map(credential::read_credential_file).transpose()?;
    let inline = settings.inline.as_ref().map(|text| text.reveal());
    let mut users = HtpasswdUsers::default();
    if let (Some(text), Some(path)) = (&file, &settings.file) {
        users.add(text, &path.display().to_string())?;
    }
    // Later entries win over earlier ones of the same name, so that entries in the document take precedence.
    if let Some(text) = inline {
        users.add(text, "htpasswd::inline")?;
    }
    if users.is_empty() {
        return Err(BuildError("basicauth has no users: htpasswd is empty".into()));
    }
    Ok(Arc::new(BasicServerAuth { users: Arc::new(users) }))
}

struct BasicServerAuth {
    users: Arc<HtpasswdUsers>,
}

impl ServerAuth for BasicServerAuth {
    fn authenticate(&self, headers: &HeaderMap, peer: IpAddr) -> AuthDecision {
        let (name, password) = match credentials(headers) {
            Ok(login) => login,
            Err(error) => return AuthDecision::Now(Err(error.into())),
        };
        match self.users.check(&name, &password, peer) {
            PasswordCheck::Now(right) => AuthDecision::Now(identify(name, right)),
            PasswordCheck::Later(right) => AuthDecision::Later(Box::pin(async move { identify(name, right.await) })),
            PasswordCheck::Busy => AuthDecision::Now(Err(AuthRefusal::Busy)),
        }
    }
}

fn identify(name: String, right: bool) -> AuthResult {
    if right { Ok(Some(name)) } else { Err(AuthError("wrong name or password".into()).into()) }
}

fn credentials(headers: &HeaderMap) -> Result<(String, String), AuthError> {
    let header = headers.get(AUTHORIZATION).ok_or_else(|| AuthError("the authorization header is missing".into()))?;
    let malformed = || AuthError("the authorization header is not valid for basic authentication".into());
    header.to_str().ok().and_then(login).ok_or_else(malformed)
}

fn login(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let plain = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = plain.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}
