//! The current context of a kubeconfig.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};
use serde_json::Value;

use super::{MAX_RESPONSE_BYTES, WebhookClient, text};
use crate::{
    client::{AddressConnector, DialAddress, HttpClient, TlsClientConfig, TlsConfigError},
    codec::yaml,
};

/// Why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookConfigError {
    #[error("failed to read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path:?}: {what}")]
    Config { path: PathBuf, what: String },
}

pub(super) fn load(path: &Path) -> Result<WebhookClient, WebhookConfigError> {
    let bytes = fs::read(path).map_err(|source| WebhookConfigError::Read { path: path.to_owned(), source })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse_webhook(&bytes, folder).map_err(|what| WebhookConfigError::Config { path: path.to_owned(), what })
}

fn parse_webhook(bytes: &[u8], folder: &Path) -> Result<WebhookClient, String> {
    let config = yaml::decode(bytes).map_err(|error| error.to_string())?.value;
    let context = find_named(&config, "contexts", text(&config, "/current-context"), "/context")?;
    let cluster = find_named(&config, "clusters", text(context, "/cluster"), "/cluster")?;
    let user = match text(context, "/user") {
        "" => &Value::Null,
        name => find_named(&config, "users", name, "/user")?,
    };
    let url: Uri = text(cluster, "/server").parse().map_err(|_| "server: not a URL".to_owned())?;
    let host = url.host().ok_or("server: no host")?.trim_matches(['[', ']']).to_owned();
    if cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true) {
        return Err("insecure-skip-tls-verify is not supported; give certificate-authority-data".to_owned());
    }
    let secure = url.scheme_str() == Some("https");
    let trust = if secure { Some(tls_config(cluster, user, &host, folder)?) } else { None };
    let address = DialAddress::Tcp(host, url.port_u16().unwrap_or(if secure { 443 } else { 80 }));
    let client = HttpClient::new(AddressConnector::new(address, trust), false, MAX_RESPONSE_BYTES);
    Ok(WebhookClient { client, url, authorization: authorization(user, folder)? })
}

/// The entry of this name in a list of the kubeconfig.
fn find_named<'a>(config: &'a Value, list: &str, name: &str, inside: &str) -> Result<&'a Value, String> {
    let mut all = config.get(list).and_then(Value::as_array).into_iter().flatten();
    let found = all.find(|one| text(one, "/name") == name).and_then(|one| one.pointer(inside));
    found.ok_or_else(|| format!("{list}: {name:?} not found"))
}

fn tls_config(cluster: &Value, user: &Value, host: &str, folder: &Path) -> Result<TlsClientConfig, String> {
    let ca = read_content(cluster, "certificate-authority", folder)?;
    let certificate = read_content(user, "client-certificate", folder)?;
    let key = read_content(user, "client-key", folder)?;
    let name = Some(text(cluster, "/tls-server-name")).filter(|name| !name.is_empty()).unwrap_or(host);
    let identity = certificate.as_deref().zip(key.as_deref());
    let trust = TlsClientConfig::new(ca.as_deref(), name, identity, &[b"h2", b"http/1.1"]);
    trust.map_err(|error: TlsConfigError| error.to_string())
}

/// The content in the kubeconfig or else of the file that it names.
fn read_content(from: &Value, field: &str, folder: &Path) -> Result<Option<Vec<u8>>, String> {
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
    let mut value =
        HeaderValue::try_from(header).map_err(|_| "the credentials are not valid in an HTTP header".to_owned())?;
    value.set_sensitive(true);
    Ok(Some(value))
}
