//! The address of a webhook, and the connections to it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use kubewake_runtime::lock::Mutex;
use serde_json::Value;

use super::ServiceAddressResolver;
use crate::client::{AddressConnector, DialAddress, HttpClient, TlsClientConfig};

/// A response to a review of an object of at most 3 MiB, perhaps with a patch of all of it in Base64.
const MAX_RESPONSE_BYTES: usize = 8 << 20;
const HTTPS_PORT: u16 = 443;

/// The address of a webhook. Its connections are pooled and live until its configuration changes.
#[derive(Debug)]
pub struct WebhookEndpoint {
    /// Host and port, as in the URL.
    authority: String,
    /// The path of the URL, without the query.
    path: String,
    /// The name that the certificate must have.
    host: String,
    port: u16,
    /// The namespace and name of the Service, if the webhook is behind one.
    service: Option<(String, String)>,
    /// The TLS configuration, or why there is none.
    trust: Result<TlsClientConfig, String>,
    client: Mutex<Option<(DialAddress, HttpClient)>>,
}

impl WebhookEndpoint {
    pub fn from_client_config(config: &Value) -> Self {
        match config.get("service").filter(|service| service.is_object()) {
            Some(service) => Self::from_service(service, config),
            None => Self::from_url(config.get("url").and_then(Value::as_str).unwrap_or_default(), config),
        }
    }

    fn from_service(service: &Value, config: &Value) -> Self {
        let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("namespace").to_owned();
        let name = text("name").to_owned();
        let port =
            service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok()).unwrap_or(HTTPS_PORT);
        let host = format!("{name}.{namespace}.svc");
        let path = match text("path") {
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        let authority = format!("{host}:{port}");
        Self { service: Some((namespace, name)), ..Self::new(authority, path, host, port, config) }
    }

    fn from_url(url: &str, config: &Value) -> Self {
        let uri: Option<Uri> = url.parse().ok().filter(|uri: &Uri| uri.scheme_str() == Some("https"));
        let Some((uri, authority)) = uri.as_ref().and_then(|uri| Some((uri, uri.authority()?))) else {
            let mut endpoint = Self::new(String::new(), String::new(), String::new(), HTTPS_PORT, &Value::Null);
            endpoint.trust = Err(format!("{url:?} is not a valid webhook URL"));
            return endpoint;
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(HTTPS_PORT);
        Self::new(authority.to_string(), uri.path().to_owned(), host, port, config)
    }

    fn new(authority: String, path: String, host: String, port: u16, config: &Value) -> Self {
        let trust = tls_config(config, &host);
        Self { authority, path, host, port, service: None, trust, client: Mutex::default() }
    }

    /// The URL to call, with the timeout as a parameter.
    pub fn url(&self, seconds: u64) -> String {
        format!("https://{}{}?timeout={seconds}s", self.authority, self.path)
    }

    /// Host and port, as recorded in spans.
    pub fn server(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// An error if the webhook can never be called.
    pub fn check_config(&self) -> Result<(), String> {
        self.trust.as_ref().map(drop).map_err(Clone::clone)
    }

    /// The current address of the webhook, and a client for it.
    pub fn client(&self, services: &dyn ServiceAddressResolver) -> Result<(DialAddress, HttpClient), String> {
        let trust = self.trust.as_ref().map_err(Clone::clone)?;
        let address = match &self.service {
            Some((namespace, name)) => services.resolve(namespace, name, self.port)?,
            None => DialAddress::Tcp(self.host.clone(), self.port),
        };
        let mut client = self.client.lock();
        match &*client {
            Some((known, client)) if *known == address => Ok((address, client.clone())),
            _ => {
                let new = HttpClient::new(
                    AddressConnector::new(address.clone(), Some(trust.clone())),
                    false,
                    MAX_RESPONSE_BYTES,
                );
                *client = Some((address.clone(), new.clone()));
                Ok((address, new))
            }
        }
    }
}

fn tls_config(config: &Value, host: &str) -> Result<TlsClientConfig, String> {
    let bundle = config.get("caBundle").and_then(Value::as_str).filter(|bundle| !bundle.is_empty());
    let bundle = bundle.map(|bundle| STANDARD.decode(bundle)).transpose().map_err(|error| error.to_string())?;
    TlsClientConfig::new(bundle.as_deref(), host, None, &[b"h2", b"http/1.1"]).map_err(|error| error.to_string())
}
