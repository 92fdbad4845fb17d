//! The current context of a kubeconfig.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};
use serde_json::Value;

use super::{ANSWER, Webhook, text};
use crate::{
    client::{Address, Client, Connector, Trust, TrustError},
    codec::yaml,
};

/// Why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path:?}: {what}")]
    Config { path: PathBuf, what: String },
}

pub(super) fn load(path: &Path) -> Result<Webhook, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    webhook(&bytes, folder).map_err(|what| Error::Config { path: path.to_owned(), what })
}

fn webhook(bytes: &[u8], folder: &Path) -> Result<Webhook, String> {
    let config = yaml::decode(bytes).map_err(|error| error.to_string())?.value;
    let context = named(&config, "contexts", text(&config, "/current-context"), "/context")?;
    let cluster = named(&config, "clusters", text(context, "/cluster"), "/cluster")?;
    let user = match text(context, "/user") {
        "" => &Value::Null,
        name => named(&config, "users", name, "/user")?,
    };
    let url: Uri = text(cluster, "/server").parse().map_err(|_| "server: not a URL".to_owned())?;
    let host = url.host().ok_or("server: no host")?.trim_matches(['[', ']']).to_owned();
    if cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true) {
        return Err("insecure-skip-tls-verify is not supported; give certificate-authority-data".to_owned());
    }
    let secure = url.scheme_str() == Some("https");
    let trust = if secure { Some(trust(cluster, user, &host, folder)?) } else { None };
    let address = Address::Tcp(host, url.port_u16().unwrap_or(if secure { 443 } else { 80 }));
    let client = Client::new(Connector::new(address, trust), false, ANSWER);
    Ok(Webhook { client, url, authorization: authorization(user, folder)? })
}

/// What has this name in a list of the kubeconfig.
fn named<'a>(config: &'a Value, list: &str, name: &str, inside: &str) -> Result<&'a Value, String> {
    let mut all = config.get(list).and_then(Value::as_array).into_iter().flatten();
    let found = all.find(|one| text(one, "/name") == name).and_then(|one| one.pointer(inside));
    found.ok_or_else(|| format!("{list}: there is no {name:?}"))
}

fn trust(cluster: &Value, user: &Value, host: &str, folder: &Path) -> Result<Trust, String> {
    let ca = content(cluster, "certificate-authority", folder)?;
    let certificate = content(user, "client-certificate", folder)?;
    let key = content(user, "client-key", folder)?;
    let name = Some(text(cluster, "/tls-server-name")).filter(|name| !name.is_empty()).unwrap_or(host);
    let identity = certificate.as_deref().zip(key.as_deref());
    let trust = Trust::new(ca.as_deref(), name, identity, &[b"h2", b"http/1.1"]);
    trust.map_err(|error: TrustError| error.to_string())
}

/// A file beside the kubeconfig, or its content in the kubeconfig, which wins.
fn content(from: &Value, field: &str, folder: &Path) -> Result<Option<Vec<u8>>, String> {
    match (text(from, &format!("/{field}-data")), text(from, &format!("/{field}"))) {
        ("", "") => Ok(None),
        ("", file) => fs::read(folder.join(file)).map(Some).map_err(|error| format!("{field}: {file}: {error}")),
        (data, _) => STANDARD.decode(data).map(Some).map_err(|_| format!("{field}-data: not base64")),
    }
}

fn authorization(user: &Value, folder: &Path) -> Result<Option<HeaderValue>, String> {
    let token = match (text(user, "/token"), text(user, "/tokenFile")) {
        ("", "") => None,
        ("", file) => {
            let token = fs::read_to_string(folder.join(file)).map_err(|error| format!("tokenFile: {file}: {error}"))?;
            Some(format!("Bearer {}", token.trim()))
        }
        (token, _) => Some(format!("Bearer {token}")),
    };
    let basic = match (text(user, "/username"), text(user, "/password")) {
        ("", _) => None,
        (name, password) => Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))),
    };
    let Some(header) = token.or(basic) else { return Ok(None) };
    let mut value = HeaderValue::try_from(header).map_err(|_| "the credentials cannot stand in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(Some(value))
}
