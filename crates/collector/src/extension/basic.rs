//! `basicauth`: a name and a password.
//!
//! Files are read when the extension is built; whoever sees one change builds it again.

mod htpasswd;
mod places;

#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use kubewake_config::model::{BasicAuth, ClientCredentials, Htpasswd};

use super::{AuthError, AuthRefusal, ClientAuth, Identified, ServerAuth, Verdict};
use crate::{
    components::{Auth, BuildError},
    net::request::credential::{self, Fixed},
};
use htpasswd::{Checked, Users};

/// Builds the one side that the settings are for.
pub(crate) fn build(settings: &BasicAuth) -> Result<Auth, BuildError> {
    match settings {
        BasicAuth::Client(settings) => Ok(Auth { client: Some(client(settings)?), server: None }),
        BasicAuth::Server(settings) => Ok(Auth { client: None, server: Some(server(settings)?) }),
    }
}

/// Says who we are, always in the same words.
fn client(settings: &ClientCredentials) -> Result<Arc<dyn ClientAuth>, BuildError> {
    let username = credential::value(&settings.username, settings.username_file.as_deref())?;
    let password = credential::value(settings.password.reveal(), settings.password_file.as_deref())?;
    let login = STANDARD.encode(format!("{username}:{password}"));
    Ok(Arc::new(Fixed::new(AUTHORIZATION, &format!("Basic {login}"))?))
}

/// Lets in who is listed.
fn server(settings: &Htpasswd) -> Result<Arc<dyn ServerAuth>, BuildError> {
    let file = settings.file.as_deref().map(credential::read).transpose()?;
    let inline = settings.inline.as_ref().map(|text| text.reveal());
    let mut users = Users::default();
    if let (Some(text), Some(path)) = (&file, &settings.file) {
        users.add(text, &path.display().to_string())?;
    }
    // Later entries win over earlier ones of the same name, so the document has the last word.
    if let Some(text) = inline {
        users.add(text, "htpasswd::inline")?;
    }
    if users.is_empty() {
        return Err(BuildError("basicauth has no users: htpasswd names none".into()));
    }
    Ok(Arc::new(Server { users: Arc::new(users) }))
}

struct Server {
    users: Arc<Users>,
}

impl ServerAuth for Server {
    fn authenticate(&self, headers: &HeaderMap, peer: IpAddr) -> Verdict {
        let (name, password) = match credentials(headers) {
            Ok(login) => login,
            Err(error) => return Verdict::Now(Err(error.into())),
        };
        match self.users.check(&name, &password, peer) {
            Checked::Now(right) => Verdict::Now(admit(name, right)),
            Checked::Later(right) => Verdict::Later(Box::pin(async move { admit(name, right.await) })),
            Checked::Crowded => Verdict::Now(Err(AuthRefusal::Busy)),
        }
    }
}

fn admit(name: String, right: bool) -> Identified {
    if right { Ok(Some(name)) } else { Err(AuthError("wrong name or password".into()).into()) }
}

fn credentials(headers: &HeaderMap) -> Result<(String, String), AuthError> {
    let header = headers.get(AUTHORIZATION).ok_or_else(|| AuthError("no authorization".into()))?;
    let malformed = || AuthError("authorization is not of the form that basic authentication has".into());
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
