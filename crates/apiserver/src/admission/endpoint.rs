//! Where a webhook is, and the connections to it.

use std::sync::{Mutex, PoisonError};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use serde_json::Value;

use super::Services;
use crate::client::{Address, Client, Connector, Trust};

/// A review answers a question about an object of at most 3 MiB, perhaps with a patch of all of it in Base64.
const MAX_ANSWER: usize = 8 << 20;
/// The port of HTTPS, where none is given.
const HTTPS: u16 = 443;

/// Where a webhook is. Its connections are pooled and live as long as its configuration does not change.
#[derive(Debug)]
pub struct Endpoint {
    /// Name or address, and port, as in the URL.
    authority: String,
    /// As in the URL, without the query.
    path: String,
    /// The name in its certificate.
    host: String,
    port: u16,
    /// The Service that it is behind.
    service: Option<(String, String)>,
    /// Or why nobody can be called.
    trust: Result<Trust, String>,
    client: Mutex<Option<(Address, Client)>>,
}

impl Endpoint {
    /// Reads a `clientConfig`.
    pub fn read(config: &Value) -> Self {
        match config.get("service").filter(|service| service.is_object()) {
            Some(service) => Self::of_service(service, config),
            None => Self::of_url(config.get("url").and_then(Value::as_str).unwrap_or_default(), config),
        }
    }

    fn of_service(service: &Value, config: &Value) -> Self {
        let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("namespace").to_owned(), text("name").to_owned());
        let port =
            service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok()).unwrap_or(HTTPS);
        let host = format!("{name}.{namespace}.svc");
        let path = match text("path") {
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        let authority = format!("{host}:{port}");
        Self { service: Some((namespace, name)), ..Self::new(authority, path, host, port, config) }
    }

    fn of_url(url: &str, config: &Value) -> Self {
        let uri: Option<Uri> = url.parse().ok().filter(|uri: &Uri| uri.scheme_str() == Some("https"));
        let Some((uri, authority)) = uri.as_ref().and_then(|uri| Some((uri, uri.authority()?))) else {
            let mut endpoint = Self::new(String::new(), String::new(), String::new(), HTTPS, &Value::Null);
            endpoint.trust = Err(format!("{url:?} is no URL of a webhook"));
            return endpoint;
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(HTTPS);
        Self::new(authority.to_string(), uri.path().to_owned(), host, port, config)
    }

    fn new(authority: String, path: String, host: String, port: u16, config: &Value) -> Self {
        let trust = trust(config, &host);
        Self { authority, path, host, port, service: None, trust, client: Mutex::default() }
    }

    /// The URL to call, with the time that the webhook has.
    pub fn url(&self, seconds: u64) -> String {
        format!("https://{}{}?timeout={seconds}s", self.authority, self.path)
    }

    /// Name or address, and port, as spans have them.
    pub fn server(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Why it can never be called.
    pub fn check(&self) -> Result<(), String> {
        self.trust.as_ref().map(drop).map_err(Clone::clone)
    }

    /// The address that it has now, and a client for it.
    pub fn client(&self, services: &dyn Services) -> Result<(Address, Client), String> {
        let trust = self.trust.as_ref().map_err(Clone::clone)?;
        let address = match &self.service {
            Some((namespace, name)) => services.resolve(namespace, name, self.port)?,
            None => Address::Tcp(self.host.clone(), self.port),
        };
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        match &*client {
            Some((known, client)) if *known == address => Ok((address, client.clone())),
            _ => {
                let new = Client::new(Connector::new(address.clone(), Some(trust.clone())), false, MAX_ANSWER);
                *client = Some((address.clone(), new.clone()));
                Ok((address, new))
            }
        }
    }
}

fn trust(config: &Value, host: &str) -> Result<Trust, String> {
    let bundle = config.get("caBundle").and_then(Value::as_str).filter(|bundle| !bundle.is_empty());
    let bundle = bundle.map(|bundle| STANDARD.decode(bundle)).transpose().map_err(|error| error.to_string())?;
    Trust::new(bundle.as_deref(), host, None, &[b"h2", b"http/1.1"]).map_err(|error| error.to_string())
}
